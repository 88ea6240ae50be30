"""The papers' experiments: what a paper printed, beside what Tidegate measures."""
