"""Pseudonyms: secret names for identifiers, their shapes, and the keys that they are made with."""
