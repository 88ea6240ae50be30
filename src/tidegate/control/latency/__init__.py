"""The default policy: the fewest cores that hold a latency target."""
