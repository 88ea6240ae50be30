"""Shedding on Spark: which rows are dropped, and the counts of those offered and kept."""
