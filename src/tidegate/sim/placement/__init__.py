"""Executors on nodes: the three paradigms compared (Elasticutor 5)."""
