"""A run while it happens."""
