"""MDAV on points: the fast way for numeric columns."""
