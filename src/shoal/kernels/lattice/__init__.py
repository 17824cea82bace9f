"""Searches over the levels of hierarchies that all records share."""
