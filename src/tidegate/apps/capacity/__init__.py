"""Measures how much a pipeline processes on numbers of cores (MST II-A, III-A)."""
