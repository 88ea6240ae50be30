"""Frequent pattern detection over a sliding window of tweets (DRS section V-A.2)."""
