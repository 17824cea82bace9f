"""Searches by an intruder who links records."""
