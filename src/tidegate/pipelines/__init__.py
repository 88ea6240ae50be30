"""What the user writes: operators, the graph of them, its cuts into segments, its validation."""
