"""A release on disk: written whole or not at all, read, verified and signed."""
