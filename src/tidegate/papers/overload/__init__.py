"""The overload paper's experiments, section 4."""
