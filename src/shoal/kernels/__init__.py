"""Numba on arrays: no frames, no checks, no options. Each equals a slow reference in its test.

Nothing is imported here, so that ``import shoal`` stays light: import a kernel where it is called.

Words of all packages: *labels* say which group each record is in, *codes* which value it has. A
search that takes long works in portions: call ``advance`` until it gives that all is done. Arrays
of a named tuple that are called room are memory that a search uses again and again.
"""
