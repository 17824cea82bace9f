"""The hierarchies of a project: where they are kept, how they look, and how they are edited."""
