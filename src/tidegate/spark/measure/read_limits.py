"""The limits that a query's sources were given: rows or files of a batch, and tasks that read."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql.streaming.query import StreamingQuery

_ROWS, _FILES, _TASKS = "maxoffsetspertrigger", "maxfilespertrigger", "minpartitions"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """What one batch may take from all sources of a query; None: no limit, or not known."""

    rows: int | None = None
    files: int | None = None
    min_partitions: int | None = None
    """Tasks that read Kafka at least."""


NO_LIMITS = ReadLimits()


def read_limits(query: StreamingQuery) -> ReadLimits:
    """The limits of a query that runs, by the options that its sources were loaded with.

    They are found in Spark's own plan of the query. A Spark that has it elsewhere does not tell,
    and a query without known limits is measured as well.
    """
    try:
        plan = query._jsq.streamingQuery().analyzedPlan()
        return limits_of(list(_options(plan)))
    except (Py4JError, AttributeError, TypeError):
        return NO_LIMITS


def limits_of(sources: list[Mapping[str, str]]) -> ReadLimits:
    """The limits of all sources together; one source without a limit lets in any number of rows."""
    rows = [_number(source, _ROWS) for source in sources]
    files = [_number(source, _FILES) for source in sources]
    tasks = [number for source in sources if (number := _number(source, _TASKS)) is not None]
    return ReadLimits(
        rows=_sum(rows),
        files=_sum(files),
        min_partitions=sum(tasks) if tasks else None,
    )


def _sum(numbers: list[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known and len(known) == len(numbers) else None


def _number(options: Mapping[str, str], name: str) -> int | None:
    for key, value in options.items():
        if key.lower() == name and str(value).strip().isdecimal():
            return int(value)
    return None


def _options(plan: Any) -> Iterator[Mapping[str, str]]:
    """The options of each streaming source of a plan."""
    leaves = plan.collectLeaves().iterator()
    while leaves.hasNext():
        leaf = leaves.next()
        kind = str(leaf.getClass().getSimpleName())
        if kind == "StreamingRelationV2":
            yield dict(leaf.extraOptions().asCaseSensitiveMap())
        elif kind == "StreamingRelation":
            pairs, found = leaf.dataSource().options().iterator(), {}
            while pairs.hasNext():
                pair = pairs.next()
                found[str(pair._1())] = str(pair._2())
            yield found
