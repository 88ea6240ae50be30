"""Placement of executors' cores on nodes (Elasticutor 4.2)."""
