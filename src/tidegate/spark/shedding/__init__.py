"""Which rows are shed, and their counts."""
