"""How records are generalized: the searches behind Generalize."""
