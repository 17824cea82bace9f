"""Running the tasks of a study in processes or on a cluster, and storing the results."""
