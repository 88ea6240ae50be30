"""A small frame whose partitions are computed on executors of our choice."""

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import IntegerType, StructField, StructType

_NUMBERED = StructType([StructField("number", IntegerType(), nullable=False)])


def located(session: SparkSession, places: Sequence[str]) -> DataFrame:
    """One row and one partition for each place, which is Spark's name of an executor.

    A place is preferred: Spark's scheduler takes it if a core is free there.
    """
    context = session.sparkContext
    jvm, gateway = context._jvm, context._gateway
    assert jvm is not None and gateway is not None
    rows = jvm.java.util.ArrayList()
    for number, place in enumerate(places):
        values = gateway.new_array(jvm.java.lang.Object, 1)
        values[0] = number
        one = jvm.java.util.ArrayList()
        one.add(place)
        row = jvm.org.apache.spark.sql.RowFactory.create(values)
        rows.add(jvm.scala.Tuple2(row, jvm.PythonUtils.toSeq(one)))
    tag = jvm.scala.reflect.ClassTag.Any()
    preferring = context._jsc.sc().makeRDD(jvm.PythonUtils.toSeq(rows), tag)
    columns = jvm.org.apache.spark.sql.types.DataType.fromJson(_NUMBERED.json())
    frame = session._jsparkSession.createDataFrame(preferring.toJavaRDD(), columns)
    return DataFrame(frame, session)
