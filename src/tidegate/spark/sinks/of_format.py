"""Chooses how a sink writes to a Spark format, and refuses before the start what cannot work."""

from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from tidegate.errors import AskedWrongly, nearest
from tidegate.pipelines.graph import Graph, Sink
from tidegate.pipelines.schema import require_columns
from tidegate.spark.sinks.appended import AppendSink
from tidegate.spark.sinks.attempt import Attempt
from tidegate.spark.sinks.delta import RESERVED, DeltaSink
from tidegate.spark.sinks.files import SPARKS_LOG, FileSink
from tidegate.spark.sinks.format_class import class_of, writes_files
from tidegate.spark.sinks.hadoop import HadoopDirectory
from tidegate.spark.sinks.topic import TopicSink
from tidegate.spark.state.location import refuse_credentials

_KNOWN = ("parquet", "orc", "csv", "json", "text", "avro", "jdbc", "kafka", "noop", "console")
_REMEDY = {
    "kafka": "give the session its connector with tidegate.session(kafka=True)",
    "delta": "give the session Delta Lake, in a release that fits pyspark, with "
    "the settings spark.jars.packages, spark.sql.extensions and "
    "spark.sql.catalog.spark_catalog that its documentation names",
}


class FormatSink(Protocol):
    """Writes the batches of one sink."""

    def write(self, frame: DataFrame, attempt: Attempt) -> None:
        """Write a batch."""
        ...


def check_sinks(graph: Graph, session: SparkSession) -> None:
    """Refuse formats that do not exist, and options that are missing or contradict the format."""
    for node in graph.nodes.values():
        if not isinstance(node, Sink) or node.format is None:
            continue
        sink = sink_of(node, session)
        if isinstance(sink, TopicSink):
            sink.check()
        elif isinstance(sink, FileSink):
            _check_directory(node.name, HadoopDirectory.of(session, sink.path))


def sink_of(node: Sink, session: SparkSession) -> FormatSink:
    """How to write to the format of a sink; raises if Spark does not have it."""
    name, options = str(node.format), dict(node.options)
    refuse_credentials(options.get("path", ""), f"sink '{node.name}': the path")
    kind = class_of(session, name)
    if kind is None:
        raise AskedWrongly(
            f"sink '{node.name}': Spark has no format '{name}'"
            + ("" if name in {*_KNOWN, *_REMEDY} else nearest(name, _KNOWN))
            + f"; {_REMEDY.get(name.lower(), 'if a package brings it, add it to the session')}"
        )
    _refuse_mode(node, options)
    if name.lower() == "kafka":
        return TopicSink.of(node.name, node.schema, options)
    delta = name.lower() == "delta"
    if not delta and not writes_files(session, kind):
        return AppendSink(name, node.options)
    if "path" not in options:
        raise AskedWrongly(
            f"sink '{node.name}': the format '{name}' writes files and needs a path, as "
            f"in .to('{name}', path='...')"
        )
    folders = tuple(filter(None, options.pop("partition_by", "").replace(" ", "").split(",")))
    require_columns(folders, node.schema, f"sink '{node.name}': partition_by")
    if delta:
        _refuse_reserved(node, options)
        return DeltaSink(tuple(options.items()), folders)
    return FileSink(name, options.pop("path"), tuple(options.items()), folders)


def _refuse_mode(node: Sink, options: dict[str, str]) -> None:
    mode = options.get("mode")
    if mode is not None:
        raise AskedWrongly(
            f"sink '{node.name}': mode='{mode}' is not an option; a sink of a stream adds each "
            "batch to what is there, so leave it out"
        )


def _refuse_reserved(node: Sink, options: dict[str, str]) -> None:
    for name in options:
        if name.lower() in (one.lower() for one in RESERVED):
            raise AskedWrongly(
                f"sink '{node.name}': {name} is what makes a batch exactly once, and is set to the "
                "batch's own; leave it out"
            )


def _check_directory(name: str, directory: HadoopDirectory) -> None:
    if directory.exists(SPARKS_LOG):
        raise AskedWrongly(
            f"sink '{name}': {directory.location} was written by Spark's own file sink, and Spark "
            f"reads only the files that its log there ({SPARKS_LOG}) names; give another directory"
        )
