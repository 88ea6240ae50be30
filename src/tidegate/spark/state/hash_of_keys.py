"""The hashes of keys as Spark computes them, for tools that have the keys without a pipeline."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from tidegate.spark.state.reshard import Hashes


def spark_hashes(session: SparkSession) -> Hashes:
    """A function that hashes keys in this session."""

    def hashes(keys: pa.Table) -> NDArray[np.int64]:
        columns = ", ".join(f"`{name}`" for name in keys.column_names)
        frame = session.createDataFrame(keys)
        found = frame.selectExpr(f"xxhash64({columns}) as hash").toArrow()
        numbers: NDArray[np.int64] = found.column("hash").to_numpy()
        return numbers

    return hashes
