"""Simulators: they run the same controllers and policies as Spark does, without a cluster."""
