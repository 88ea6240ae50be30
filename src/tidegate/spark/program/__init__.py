"""Somebody's PySpark program, run as it is and attached to: `tidegate run`."""
