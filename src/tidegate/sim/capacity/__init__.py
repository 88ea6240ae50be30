"""Backtests on a week of load, a minute a step (MST)."""
