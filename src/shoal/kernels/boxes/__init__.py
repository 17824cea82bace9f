"""Boxes over ordered values: cutting, covering and searching them."""
