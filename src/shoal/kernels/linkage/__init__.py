"""Searches of an intruder who links records."""
