"""Which station gets how many cores (DRS), and the DRS policies."""
