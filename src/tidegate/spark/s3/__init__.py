"""Checkpoints on S3: one address for three clients, exclusive commits, and Spark's own logs."""
