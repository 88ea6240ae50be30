"""Checks of sinks that are Spark formats, before anything runs."""

from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tidegate.errors import AskedWrongly, nearest
from tidegate.pipelines.graph import Graph, Sink
from tidegate.spark.state.location import refuse_credentials

_SQL = "org.apache.spark.sql"
_FILES = (
    f"{_SQL}.execution.datasources.FileFormat",
    f"{_SQL}.execution.datasources.v2.FileDataSourceV2",
)
_KNOWN = ("parquet", "orc", "csv", "json", "text", "avro", "jdbc", "kafka", "noop", "console")
_REMEDY = {"kafka": "give the session its connector with tidegate.session(kafka=True)"}


def check_sinks(graph: Graph, session: SparkSession) -> None:
    """Refuse formats that do not exist, and formats of files without a path."""
    for node in graph.nodes.values():
        if not isinstance(node, Sink) or node.format is None:
            continue
        options = dict(node.options)
        refuse_credentials(options.get("path", ""), f"sink '{node.name}': the path")
        kind = class_of(session, node.format)
        if kind is None:
            raise AskedWrongly(
                f"sink '{node.name}': Spark has no format '{node.format}'"
                + ("" if node.format in _KNOWN else nearest(node.format, _KNOWN))
                + f"; {_REMEDY.get(node.format, 'if a package brings it, add it to the session')}"
            )
        if "path" not in options and _writes_files(session, kind):
            raise AskedWrongly(
                f"sink '{node.name}': the format '{node.format}' writes files and needs a path, as "
                f"in .to('{node.format}', path='...')"
            )


def class_of(session: SparkSession, name: str) -> Any:
    """The class of a format, as Spark finds it; None if there is none."""
    java: Any = session._jvm
    found = java.org.apache.spark.sql.execution.datasources.DataSource
    try:
        return found.lookupDataSource(name, session._jsparkSession.sessionState().conf())
    except (Py4JJavaError, AnalysisException):
        return None


def _writes_files(session: SparkSession, kind: Any) -> bool:
    java: Any = session._jvm
    loader = java.java.lang.Thread.currentThread().getContextClassLoader()
    return any(
        bool(java.java.lang.Class.forName(name, True, loader).isAssignableFrom(kind))
        for name in _FILES
    )
