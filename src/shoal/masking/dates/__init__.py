"""Dates: a secret shift for each person, and dates of which the year alone is left."""
