"""The overload paper's engine and experiments."""
