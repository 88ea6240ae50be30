"""The overload paper's experiment: CPU use of ten nodes, averaged by many queries."""
