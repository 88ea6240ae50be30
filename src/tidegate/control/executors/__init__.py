"""What the executors of a pipeline are like: those that are slower than the others."""
