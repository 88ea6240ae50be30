"""Backtests on a week of load in steps of a minute (MST)."""
