"""Applications: pipelines that anyone can run, from the command line or as an example."""
