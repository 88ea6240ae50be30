"""Elasticutor's experiments (section 5): the micro-benchmark and the stock exchange."""
