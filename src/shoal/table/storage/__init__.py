"""Files and databases: reading into a frame, writing a frame, and the types in between."""
