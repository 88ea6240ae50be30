"""The class behind a Spark format, looked up as Spark does it."""

from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

_SQL = "org.apache.spark.sql"
_FILES = (
    f"{_SQL}.execution.datasources.FileFormat",
    f"{_SQL}.execution.datasources.v2.FileDataSourceV2",
)


def class_of(session: SparkSession, name: str) -> Any:
    """The class of a format, as Spark finds it; None if there is none."""
    java: Any = session._jvm
    found = java.org.apache.spark.sql.execution.datasources.DataSource
    try:
        return found.lookupDataSource(name, session._jsparkSession.sessionState().conf())
    except (Py4JJavaError, AnalysisException):
        return None


def writes_files(session: SparkSession, kind: Any) -> bool:
    """Whether a format of this class writes files."""
    java: Any = session._jvm
    loader = java.java.lang.Thread.currentThread().getContextClassLoader()
    return any(
        bool(java.java.lang.Class.forName(name, True, loader).isAssignableFrom(kind))
        for name in _FILES
    )
