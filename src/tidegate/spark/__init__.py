"""Runs pipelines on Spark. No other package of Tidegate imports Spark to run one."""
