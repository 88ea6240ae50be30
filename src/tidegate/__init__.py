"""Keeps a Spark streaming pipeline inside its latency target with as few cores as it can."""

__version__ = "0.1.0.dev0"
