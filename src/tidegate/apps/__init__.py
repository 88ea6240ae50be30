"""Applications: pipelines that anyone can run, from the command line or from an example."""
