"""What a micro-batch costs and what latency follows from it."""
