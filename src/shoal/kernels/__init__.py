"""Numba on arrays: no frames, no checks, no options. A test compares each with a slow reference.

Nothing is imported here, so that ``import shoal`` stays light: import a kernel where it is called.

Terms in all packages: *labels* are the group of each record, *codes* are its values. A long search
works in portions: call ``advance`` until it returns that everything is done. In named tuples,
"room" marks arrays that are memory for a search, used again and again.
"""
