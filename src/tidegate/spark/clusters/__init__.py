"""Clusters of several hosts on one machine: for tests and benchmarks."""
