"""Local searches that exchange records between groups."""
