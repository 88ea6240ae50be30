"""Baseline policies for comparison: thresholds, DS2, dynamic allocation, fixed."""
