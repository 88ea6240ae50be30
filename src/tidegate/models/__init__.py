"""What we believe: queueing, micro-batches, capacity. NumPy and SciPy only, nothing of ours."""
