"""Several simulated pipelines in one application."""
