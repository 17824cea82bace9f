"""What the screens Plan and Search show and write: methods, requirements, first plans, edits."""
