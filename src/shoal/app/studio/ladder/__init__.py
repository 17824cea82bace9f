"""The hierarchies of a project: where they are kept, how they are drawn and edited."""
