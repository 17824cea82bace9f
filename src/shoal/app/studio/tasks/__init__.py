"""What jobs do: one file for each kind, with one function ``run``."""
