"""Policies to compare with: thresholds, DS2, dynamic allocation, fixed."""
