"""Simulated executors on nodes, to compare the three paradigms (Elasticutor 5)."""
