"""MDAV on points: the fast way for numeric columns.

Terms of this package: a *spot* is a point with all records that lie on it. A *lane* is one of
sixteen places of a vector; a *block* is sixteen spots, one per lane. A *sieve* turns spots into
32-bit copies and knows how wrong these may be; the copies filter out what needs no exact check. The
*shell* is the list of the outermost spots, in which the one furthest from the centroid is found.
"""
