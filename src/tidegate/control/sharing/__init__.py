"""The cores of one application, divided among its pipelines."""
