"""Uniques: minimal ones, those with wildcards, those of a population."""
