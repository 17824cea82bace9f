"""Local suppression: as few blank cells as possible."""
