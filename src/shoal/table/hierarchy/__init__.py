"""Hierarchies: how the values of a column become coarser, level by level."""
