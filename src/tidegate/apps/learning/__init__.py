"""IncrementalLearning: a model that learns from a stream, updated by a loop (Flink-ER 4.2)."""
