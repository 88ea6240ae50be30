"""The live page: a server for browsers and Prometheus, from records alone."""
