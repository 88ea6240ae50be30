"""Shedding for a query that is not ours: its source DataFrame, wrapped.

A streaming plan is fixed when the query starts, so a fraction that changes while it runs must come
from outside the plan. The wrapped frame has one Arrow stage that reads the keep fraction of its
micro-batch from a small file. The first task of a batch creates that file with the fraction asked
for at that moment. All other tasks, and a replay after a crash, read it. So a whole batch is shed
by one fraction, and a replay sheds the same rows.
"""

import json
import os
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import Accumulator, AccumulatorParam, TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.types import DoubleType, StructField, StructType

from tidegate.control.row_counts import SourceCount, added
from tidegate.control.shedding.keep import Keep
from tidegate.errors import AskedWrongly, TidegateError, nearest
from tidegate.pipelines.schema import arrow_schema
from tidegate.pipelines.shedding import WEIGHT, ShedClass, Shedding, shedding_of
from tidegate.spark.batch.worker import packed, unpacked
from tidegate.spark.shedding.ledger import source_count
from tidegate.spark.shedding.sources import marked
from tidegate.spark.shedding.task import RowShedder, ShedStage

QUERY_ID = "sql.streaming.queryId"
"""The local property in which Spark tells a task its query; a restart has the same one."""
BATCH_ID = "streaming.sql.batchId"
"""The local property in which Spark tells a task its micro-batch."""
_WISH = "wish.json"
_REMEMBERED = 64
_FOLD_FROM = 4096

Part = tuple[str, int, int]
"""A query, a micro-batch of it (-1: all that were added up), and a partition of the source."""
Parts = dict[Part, SourceCount]


def shedding(
    frame: DataFrame,
    place: str,
    *,
    by: str | None = None,
    classes: Mapping[str, ShedClass] | None = None,
    key: str | tuple[str, ...] = (),
    shards: int = 256,
    weight: bool = False,
    name: str = "source",
) -> "tuple[DataFrame, ShedHandle]":
    """Wrap a streaming DataFrame so that its rows can be shed while a query reads it.

    Returns the wrapped DataFrame and the handle that sheds it. `place` is a directory that the
    driver and all executors reach by this path; the other options are those of `Stream.shed`. The
    stage is part of the query's plan from its start, so it costs time even while nothing is shed.
    """
    if not frame.isStreaming:
        raise AskedWrongly("shedding: the DataFrame is not a stream; wrap what readStream gave")
    if "://" in place:
        raise AskedWrongly(
            f"shedding: '{place}' is a URL; give a directory that all executors reach by its path, "
            "since a batch's fraction is settled by creating a file that is not there yet"
        )
    keys = (key,) if isinstance(key, str) else key
    asked = shedding_of(
        arrow_schema(frame.schema),
        "shedding",
        by=by,
        classes=classes,
        key=keys,
        shards=shards,
        weight=weight,
    )
    directory = Path(place).absolute()
    directory.mkdir(parents=True, exist_ok=True)
    stage = ShedStage(name, asked.by, asked.names, asked.shards, asked.weight, key=asked.key)
    parts = frame.sparkSession.sparkContext.accumulator({}, _UnionOfParts())
    handle = ShedHandle(directory, asked, stage, parts)
    if not (directory / _WISH).exists():
        handle.shed()
    task = _Task(packed(stage), str(directory), parts)
    columns = list(frame.schema.fields)
    if weight:
        columns.append(StructField(WEIGHT, DoubleType()))
    wrapped = marked(frame, stage).mapInArrow(lambda blocks: task(blocks), StructType(columns))
    return wrapped, handle


class ShedHandle:
    """Changes the keep fraction of a wrapped stream, and counts what was shed."""

    def __init__(
        self, directory: Path, asked: Shedding, stage: ShedStage, parts: "Accumulator[Parts]"
    ) -> None:
        self._directory = directory
        self._asked = asked
        self._stage = stage
        self._parts = parts

    def shed(self, keep: float = 1.0, by_class: Mapping[str, float] | None = None) -> None:
        """Keep this fraction of the rows from the next micro-batch on; 1 keeps all."""
        given = dict(by_class or {})
        for name, fraction in (("keep", keep), *given.items()):
            if not 0.0 <= fraction <= 1.0:
                raise AskedWrongly(
                    f"shed: {name} = {fraction:g}; give the fraction of rows to keep, from 0 to 1"
                )
        names = self._stage.classes
        for name in given:
            if name not in names:
                raise AskedWrongly(f"shed: there is no class '{name}'{nearest(name, names)}")
        for name in names:
            given[name] = max(given.get(name, keep), self._asked.classes[name].floor)
        aside = self._directory / f".{uuid.uuid4().hex}"
        aside.write_text(json.dumps({"keep": keep, "keep_by_class": given}))
        aside.rename(self._directory / _WISH)

    def keep(self) -> tuple[float, Mapping[str, float]]:
        """What the next micro-batch keeps."""
        wish = json.loads((self._directory / _WISH).read_text())
        return wish["keep"], wish["keep_by_class"]

    def counts(self, query_id: str | None = None) -> SourceCount:
        """Rows offered and kept since the frame was wrapped, in all or for one query.

        A task that is tried again and a batch that is replayed in this process count once.
        """
        total = source_count(self._stage, [])
        for (query, _, _), count in list(self._parts.value.items()):
            if query_id is None or query == query_id:
                total = added(total, count)
        return total


class _UnionOfParts(AccumulatorParam[Parts]):
    def zero(self, value: Parts) -> Parts:
        return {}

    def addInPlace(self, value1: Parts, value2: Parts) -> Parts:  # noqa: N802 (Spark's name)
        value1.update(value2)
        if len(value1) > _FOLD_FROM:
            _fold(value1)
        return value1


def _fold(parts: Parts) -> None:
    """Add up batches that can no longer be tried again: one entry per query."""
    newest: dict[str, int] = {}
    for query, batch, _ in parts:
        newest[query] = max(newest.get(query, -1), batch)
    for part in list(parts):
        query, batch, _ = part
        if 0 <= batch < newest[query] - 1:
            count, whole = parts.pop(part), (query, -1, 0)
            parts[whole] = added(parts[whole], count) if whole in parts else count


@dataclass(frozen=True, slots=True)
class _Task:
    """The Arrow stage of a wrapped stream."""

    stage: bytes
    directory: str
    parts: Any

    def __call__(self, blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        stage: ShedStage = unpacked(self.stage)
        context = TaskContext.get()
        query = None if context is None else context.getLocalProperty(QUERY_ID)
        batch = None if context is None else context.getLocalProperty(BATCH_ID)
        if query is None or batch is None:
            raise TidegateError("a wrapped stream must be read by a streaming query")
        batch_id = int(batch)
        keep = settled(Path(self.directory), query, batch_id)
        shedder = RowShedder(stage, batch_id, keep.of(stage.classes))
        for block in blocks:
            if block.num_rows:
                yield from shedder.kept(block).to_batches()
        if shedder.offered:
            count = source_count(stage, [replace(shedder.counts(), stamps=None)])
            self.parts.add({(query, batch_id, shedder.part): count})


def settled(directory: Path, query: str, batch_id: int) -> Keep:
    """What a batch keeps: what was asked for when its first task began, whoever asks later."""
    below = directory / query
    path = below / f"{batch_id:010d}.json"
    if not path.exists():
        below.mkdir(exist_ok=True)
        aside = below / f".{uuid.uuid4().hex}"
        aside.write_text((directory / _WISH).read_text())
        try:
            os.link(aside, path)  # fails if another task was quicker: its content holds
        except FileExistsError:
            pass
        finally:
            aside.unlink()
        (below / f"{batch_id - _REMEMBERED:010d}.json").unlink(missing_ok=True)
    document = json.loads(path.read_text())
    return Keep(document["keep"], document["keep_by_class"])
