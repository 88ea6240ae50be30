"""Spark's Python daemon, warmed up: it imports what every task needs before it forks workers.

A fresh worker otherwise spends a second or more of CPU on importing pandas, Arrow and us. A rescale
to more tasks needs new workers at once; forked from a warm daemon they start in milliseconds.
Spark runs it by `spark.python.daemon.module` (tidegate.spark.session sets it).
"""

import gc

import numpy  # noqa: F401
import pandas  # noqa: F401
import pyspark.sql.functions
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import tidegate.spark.batch.channel
import tidegate.spark.batch.keyed_task
import tidegate.spark.batch.map_task
import tidegate.spark.sources.arrivals  # noqa: F401

if __name__ == "__main__":
    gc.freeze()  # pages of the parent stay shared with the workers
    manager()
