"""Releases on disk: written completely or not at all, read, verified and signed."""
