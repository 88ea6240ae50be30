"""What the user writes: operators, their graph, its cuts into segments, and its validation."""
