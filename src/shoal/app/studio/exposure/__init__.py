"""How many people are unique, counted on distinct combinations and kept."""
