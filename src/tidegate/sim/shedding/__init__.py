"""Simulations of shedding: the overload paper's engine and experiments."""
