"""The cost of a micro-batch, and the latency that follows from it."""
