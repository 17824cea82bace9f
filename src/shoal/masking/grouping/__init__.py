"""Groups of at least k similar records: how records are compared, and what groups satisfy."""
