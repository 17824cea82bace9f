"""What a command shows: tables, progress, plans, errors."""
