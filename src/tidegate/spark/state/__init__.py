"""Versioned state of keyed operators: Arrow files per task and batch, memory-mapped on the node."""
