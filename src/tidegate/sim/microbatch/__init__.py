"""Simulated pipelines of micro-batches."""
