"""The cores of one Spark application, shared by its pipelines."""
