"""Models: queueing, micro-batch cost, capacity, flow and shedding. Pure numbers, no Spark."""
