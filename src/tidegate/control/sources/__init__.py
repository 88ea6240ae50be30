"""What is decided about sources: partitions that are stuck or hot, and limits at the source."""
