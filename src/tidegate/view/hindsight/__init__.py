"""A run in hindsight: which cores would have been enough, and which decisions were wrong."""
