"""Boxes over ordered values: cut, covered, searched."""
