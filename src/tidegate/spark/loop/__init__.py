"""The control loop on Spark: tick, negotiate, act."""
