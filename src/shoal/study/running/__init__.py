"""Running the tasks of a study: in processes or on a cluster, and keeping what was done."""
