"""A PySpark program as people have it: it knows nothing of Tidegate. It counts requests per user.

    tidegate run --target 5s --executors 1:3 --master 'local-cluster[3,1,1024]' \\
        --conf spark.sql.shuffle.partitions=6 examples/plain_spark.py 90

Each request waits for a slow service. Within 40 seconds the load rises to twice what one core does,
and stays there.
"""

import sys
import time

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.functions import pandas_udf

WAIT_S = 0.002


@pandas_udf("long")
def looked_up(value: pd.Series) -> pd.Series:
    """Stands for the slow service."""
    time.sleep(len(value) * WAIT_S)
    return value % 50


def main(seconds: float) -> None:
    spark = SparkSession.builder.appName("requests").getOrCreate()
    requests = (
        spark.readStream.format("rate")
        .option("rowsPerSecond", 900)
        .option("rampUpTime", "40s")
        .option("numPartitions", 6)
        .load()
    )
    counts = requests.select(looked_up("value").alias("user")).groupBy("user").count()
    query = counts.writeStream.queryName("requests").outputMode("update").format("noop").start()
    query.awaitTermination(seconds)
    query.stop()
    spark.stop()


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 90.0)
