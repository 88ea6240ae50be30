"""All that `start` checks before anything runs or is written."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tidegate.errors import AskedWrongly
from tidegate.pipelines.graph import Graph
from tidegate.spark.batch.checkpoint import Checkpoint, describe
from tidegate.spark.batch.migration import Migration, idle
from tidegate.spark.foreign_session import require_workers
from tidegate.spark.kafka.channel_topic import check_topics
from tidegate.spark.master import on_this_machine
from tidegate.spark.s3.checks import check_readable
from tidegate.spark.savepoint.index import Savepoint
from tidegate.spark.sinks.of_format import check_sinks
from tidegate.spark.state.files import Durable

_LOG = logging.getLogger("tidegate")
_OF_SPARK = ("offsets", "commits", "metadata")
"""What Spark writes into the checkpoint of a streaming query."""


def check_start(
    graph: Graph,
    session: SparkSession,
    location: str,
    given: Mapping[str, Any],
    origin: Savepoint | None = None,
) -> Migration:
    """Refuse what would fail or lose something later; returns what the user declares of changes.

    `location` is the checkpoint's URL or absolute path, and `origin` the savepoint that it is to
    begin with. Nothing is written.
    """
    root = Durable(location)
    check_place(root, str(session.sparkContext.master), given["shared_checkpoint"])
    declared = Migration.declared(given["renamed"], given["dropped"], given["same_state"])
    place = Checkpoint(root)
    found = place.description() if origin is None else dict(origin.description)
    place.fitted(graph, declared, found)
    for name in idle(found, describe(graph), declared):
        _LOG.warning(
            "pipeline '%s': the checkpoint fits without '%s' in dropped= or same_state=; remove "
            "it, or it allows the next change of '%s' as well",
            graph.name,
            name,
            name,
        )
    check_name(graph, {query.name for query in session.streams.active})
    check_sinks(graph, session)
    check_topics(graph, location)
    require_workers(session)
    return declared


def check_place(root: Durable, master: str, shared: bool) -> None:
    """Refuse a checkpoint that is not a directory of ours, or that tasks could not reach."""
    check_readable(root.url)
    if root.local and Path(root.path("")).is_file():
        raise AskedWrongly(
            f"the checkpoint {root.url} is a file; give a directory, which need not exist yet"
        )
    if root.local and not shared and not on_this_machine(master):
        raise AskedWrongly(
            f"the checkpoint {root.url} is on this machine's disk, but '{master}' runs tasks on "
            "others, which could not read each other's state; give a URL such as hdfs://... or "
            "s3://..., or start with shared_checkpoint=True if all machines mount this directory"
        )
    place = Checkpoint(root)
    if place.description() is None and any(root.exists(name) for name in _OF_SPARK):
        raise AskedWrongly(
            f"{root.url} is the checkpoint of a Spark query, not of a Tidegate pipeline; give "
            "another directory, or attach to that query with tidegate.attach"
        )


def check_name(graph: Graph, active: set[str | None]) -> None:
    """Refuse a pipeline whose queries have the names of running ones: Spark would, half way."""
    for segment in graph.segments():
        if f"{graph.name}.{segment.name}" in active:
            raise AskedWrongly(
                f"a pipeline '{graph.name}' already runs in this Spark session; stop it first, or "
                "give this one another name"
            )
