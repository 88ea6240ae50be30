"""Policies that schedule machines by the minute: the MST paper's, and the priced policy."""
