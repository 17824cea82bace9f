"""Numba on arrays: no frames, no checks, no options. Each equals a slow reference in its test.

Nothing is imported here, so that ``import shoal`` stays light: import a kernel where it is called.
"""
