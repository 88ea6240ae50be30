"""Flink-ER's experiments (section 4): four applications under a rising load, and moving state."""
