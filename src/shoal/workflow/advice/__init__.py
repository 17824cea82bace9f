"""Help with plans: a first one, what each k costs, what is left, and what would hold."""
