"""Records under a dissimilarity: distances, trees, orders and centers."""
