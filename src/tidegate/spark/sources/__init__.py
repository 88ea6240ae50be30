"""Streaming sources of our own."""
