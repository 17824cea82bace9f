"""How many people stand alone, counted on distinct combinations and kept."""
