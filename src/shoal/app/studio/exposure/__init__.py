"""Who stands alone, counted on distinct combinations and kept."""
