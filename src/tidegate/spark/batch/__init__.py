"""One micro-batch: its plan, its stages, its commit."""
