"""Streaming sources that come with Tidegate."""
