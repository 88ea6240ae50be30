"""Versioned state of keyed operators: Arrow files per task and batch, mapped on the node."""
