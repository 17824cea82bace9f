"""Which roles the columns of a table seem to play, and the evidence."""
