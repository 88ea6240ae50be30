"""Body 1: runs a pipeline on Spark."""
