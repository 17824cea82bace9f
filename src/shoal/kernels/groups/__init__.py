"""Partitions into groups of at least k records."""
