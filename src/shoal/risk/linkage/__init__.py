"""Record linkage: an intruder, what is compared, and how often a link is right."""
