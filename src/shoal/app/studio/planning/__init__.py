"""What the screens Plan and Search say and write: methods, requirements, beginnings, edits."""
