"""Sinks that are Spark formats: a replayed batch replaces what an earlier try wrote."""
