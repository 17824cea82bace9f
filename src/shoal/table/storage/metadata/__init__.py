"""Metadata files next to a table: Frictionless Table Schema, CSVW and DDI-Codebook, in and out."""
