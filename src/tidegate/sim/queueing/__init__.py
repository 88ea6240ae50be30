"""Discrete-event simulation of queueing networks."""
