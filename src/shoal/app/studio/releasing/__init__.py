"""The comparison, the checklist and the releases of a project."""
