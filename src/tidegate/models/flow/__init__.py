"""A pipeline as a flow network: capacities, cuts and bottlenecks (Flink-ER)."""
