"""Help with plans: a first plan, the cost of each k, what is left, and changes that would hold."""
