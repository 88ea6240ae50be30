"""Spark's Python daemon, with the modules that every task needs imported before it forks workers.

Otherwise each new worker spends a second or more of CPU time on importing pandas, Arrow and
Tidegate. A rescale to more tasks needs new workers at once; forked from this daemon, they start in
milliseconds. `tidegate.spark.session` sets `spark.python.daemon.module` to this module.
"""

import gc

import numpy  # noqa: F401
import pandas  # noqa: F401
import pyspark.sql.functions
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import tidegate.pipelines.functions
import tidegate.spark.batch.channel
import tidegate.spark.batch.keyed_task
import tidegate.spark.batch.map_task
import tidegate.spark.batch.rehearsed_task
import tidegate.spark.sources.arrivals
import tidegate.spark.sources.no_rows  # noqa: F401

if __name__ == "__main__":
    gc.freeze()  # so that workers keep sharing the parent's memory pages
    manager()
