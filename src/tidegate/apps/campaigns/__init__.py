"""Streaming-Benchmarks: Yahoo's advertising pipeline, views per campaign (Flink-ER 4.2)."""
