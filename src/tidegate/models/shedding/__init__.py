"""How long the next micro-batches take when rows are shed, and estimates from the rows kept."""
