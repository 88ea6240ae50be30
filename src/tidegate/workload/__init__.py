"""Workloads: rate profiles and rows as pure functions, shared by Spark and the simulator."""
