"""The tables of a study: found in folders, fetched, or given."""
