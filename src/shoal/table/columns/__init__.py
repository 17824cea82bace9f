"""Columns: at the door, coded, compared, as quantities, and without leftovers."""
