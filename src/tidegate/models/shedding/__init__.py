"""What the next micro-batches take when rows are shed, and what the kept rows estimate."""
