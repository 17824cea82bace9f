"""Papers that go with a release: metadata for other programs, and pages for those who decide."""
