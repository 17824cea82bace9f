"""MDAV on points: the fast way for numeric columns.

Words of this package: a *spot* is a point with all records that lie on it. A *lane* is one of
sixteen places of a vector, a *block* sixteen spots, a lane each. A *sieve* is what turns spots into
32-bit copies, with how wrong these may be: they sift out what need not be looked at exactly. The
*shell* is the list of the outermost spots, in which the one furthest from the centroid is found.
"""
