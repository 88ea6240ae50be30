"""Tells people what begins and what ends: in the log, by a webhook, or by a function."""
