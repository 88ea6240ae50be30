"""Savepoints: a copy of all that a pipeline needs to go on, which nothing removes."""
