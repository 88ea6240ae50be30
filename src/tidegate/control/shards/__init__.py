"""Shard routes and their balance (Elasticutor 3.1)."""
