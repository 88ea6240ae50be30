"""Elasticutor's micro-benchmark (5.1): generator to calculator, with keys that are shuffled."""
