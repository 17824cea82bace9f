"""Groups of at least k similar records: how to compare records, and what groups must satisfy."""
