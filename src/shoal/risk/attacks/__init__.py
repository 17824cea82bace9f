"""Attacks that guess what is in a table, who is, and what somebody's secret is."""
