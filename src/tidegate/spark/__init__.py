"""Body 1, which runs the pipeline: the only room that knows Spark."""
