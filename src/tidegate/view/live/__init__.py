"""A run as it happens."""
