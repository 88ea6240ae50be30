"""Whole micro-batches as they are compiled, without Spark: combining changes nothing but the rows
that are sent.
"""

import math
import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tests.helpers.frames_by_hand import (
    HandAnchors,
    HandContext,
    HandFrame,
    HandStream,
    in_partitions,
)
from tests.unit.spark.batch.test_combine_task import Told
from tidegate.control.shards.route import even_route
from tidegate.pipelines.graph import Keyed
from tidegate.pipelines.schema import struct_of
from tidegate.spark.batch import compile, worker
from tidegate.spark.batch.anchors import ALONE
from tidegate.spark.batch.compile import Compiler
from tidegate.spark.batch.plan import BatchPlan, OperatorPlan
from tidegate.spark.batch.report import combining, newest_of, once
from tidegate.spark.batch.worker import TASK
from tidegate.spark.state.cache_place import CachePlace
from tidegate.spark.state.files import Durable
from tidegate.spark.state.version import Version

AT_US = 1_700_000_000_000_000
COUNT = 900
ROW = pa.schema(
    [
        ("k", pa.string()),
        ("v", pa.int64()),
        ("f", pa.float64()),
        ("wide", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
    ]
)


def rows(seed: int) -> pa.Table:
    """Rows of which one key has half, in any order of time, with floats of any kind."""
    chance = np.random.default_rng(seed)
    key = np.where(chance.random(COUNT) < 0.5, 0, chance.integers(0, 40, COUNT))
    at_us = AT_US + (seed * 10 + chance.integers(-25, 10, COUNT)) * 1_000_000
    return pa.table(
        {
            "k": [f"key-{number}" for number in key],
            "v": chance.integers(-(2**40), 2**40, COUNT),
            "f": chance.choice([0.0, -0.0, math.nan, 1.5, -2.0], COUNT),
            "wide": ["x" * 50] * COUNT,
            "at": pa.array(at_us, pa.timestamp("us", "UTC")),
        },
        schema=ROW,
    )


def flow(stream):
    """An aggregate behind two maps, windows right behind the source, and the largest rows."""
    summary = tg.aggregate(
        n=tg.count(), total=tg.sum("v"), low=tg.min("f"), last=tg.latest("v", by="f")
    )
    mapped = stream.map(lambda t: t, name="a").map(lambda t: t, name="b")
    mapped.keyed("sums", summary, key="k", shards=32).to("noop")
    windows = tg.window(
        tg.aggregate(n=tg.count(), total=tg.sum("v")),
        every="5 seconds",
        size="10 seconds",
        event_time="at",
    )
    stream.keyed("windows", windows, key="k", shards=16).to("noop")
    stream.keyed("floats", tg.sum("f"), key="k", shards=8).to("noop")
    top = tg.top_n(2, by="v", of=("v", "at"))
    return stream.keyed("top", top, key="k", shards=8).to("noop")


@pytest.fixture(autouse=True)
def by_hand(monkeypatch):
    """No Spark: columns are names, and tasks are told their partitions by hand."""
    monkeypatch.setattr(compile.F, "col", lambda name: name)
    monkeypatch.setattr(worker, "TaskContext", HandContext)


class World:
    """A compiled pipeline and its state."""

    def __init__(self, root: Path, combine: bool, steps=flow) -> None:
        stream = tg.pipeline("p", HandStream(struct_of(ROW)), arrival="at")
        (self.segment,) = steps(stream).graph.segments()
        self.combine, self.told = combine, Told()
        state = {node.name: Durable(str(root / "state" / node.name)) for node in self.segment.keyed}
        for folder in state.values():
            folder.make()
        self.compiler = Compiler(
            self.segment, state.__getitem__, CachePlace("p", str(root / "node")), self.told
        )
        self.versions = {node.name: Version.empty(node.shards) for node in self.segment.keyed}

    def run(self, number: int, table: pa.Table, tasks: int, tries: int) -> dict[str, pa.Table]:
        """One batch, as often as it is tried; the last try counts."""
        able = self.compiler.combinable
        operators = {
            node.name: OperatorPlan(
                tasks,
                tuple((one + number) % tasks for one in even_route(node.shards, tasks)),
                combine=self.combine and node.name in able,
            )
            for node in self.segment.keyed
        }
        plan = BatchPlan(number, AT_US + number, operators)
        for _ in range(tries):
            self.told.reports = []
            made = self.compiler.frames(
                in_partitions(table, 3), plan, self.versions, HandAnchors(), ALONE
            )
        self.told.reports = once(self.told.reports)
        for node in self.segment.keyed:
            own = [report for report in self.told.reports if report.operator == node.name]
            changes = [report.change for report in own if report.change is not None]
            self.versions[node.name] = self.versions[node.name].after(
                changes, newest_of(own), node.bound.delay_us, at_us=plan.at_us
            )
        return {node.name: made.of[node.name].rows for node in self.segment.keyed}

    def reports(self, operator: str) -> list:
        return [report for report in self.told.reports if report.operator == operator]


def bits(table: pa.Table) -> list[tuple]:
    return sorted(
        (
            tuple(struct.pack("d", v) if isinstance(v, float) else v for v in row.values())
            for row in table.to_pylist()
        ),
        key=repr,
    )


def test_combined_batches_emit_and_tell_what_others_do(tmp_path):
    """With other tasks and routes in each batch, and replays."""
    plain, ours = World(tmp_path / "a", False), World(tmp_path / "b", True)
    assert ours.compiler.combinable == {"sums", "windows", "top"}, "floats add up in their order"
    late = 0
    for number, (tasks, tries) in enumerate([(2, 1), (3, 2), (1, 1), (4, 2)]):
        table = rows(number)
        expected, found = plain.run(number, table, tasks, 1), ours.run(number, table, tasks, tries)
        for node in ours.segment.keyed:
            name = node.name
            assert bits(found[name]) == bits(expected[name]), name
            assert ours.versions[name].event_times == plain.versions[name].event_times
            told, other = ours.reports(name), plain.reports(name)
            assert sum(report.rows_in for report in told) == COUNT
            late_rows = [sum(report.late_rows for report in one) for one in (told, other)]
            assert late_rows[0] == late_rows[1]
            late += late_rows[0]
            front = ours.reports(combining(name))
            assert bool(front) == (name in ours.compiler.combinable)
            if front:
                assert sum(report.rows_in for report in front) == COUNT
                given = sum(report.combined_rows for report in told)
                assert sum(report.rows_out for report in front) == given < COUNT
                assert sum(one.bytes_in for one in told) < sum(one.bytes_in for one in other)
        for mapped in ("a", "b"):
            assert sum(report.rows_in for report in ours.reports(mapped)) >= COUNT
        noted = [
            [report.stamps.rows for report in world.told.reports if report.stamps is not None]
            for world in (plain, ours)
        ]
        assert sum(noted[0]) == sum(noted[1]) > 0
    assert late > 0


def test_only_columns_that_are_looked_at_are_sent(tmp_path, monkeypatch):
    """The function of the user may look at any; a count needs the key alone."""
    seen: dict[str, list[str]] = {}
    sent = HandFrame.repartitionById

    def watched(self: HandFrame, tasks: int, column: str) -> HandFrame:
        seen[str(len(seen))] = [name for name in self.rows.column_names if name[:2] != "__"]
        return sent(self, tasks, column)

    monkeypatch.setattr(HandFrame, "repartitionById", watched)
    world = World(tmp_path, False)
    world.run(0, rows(0), 2, 1)
    names = [node.name for node in world.segment.nodes if isinstance(node, Keyed)]
    found = dict(zip(names, seen.values(), strict=True))
    assert found["windows"] == ["k", "v", "at"]
    assert found["floats"] == ["k", "f"]
    assert sorted(found["sums"]) == ["f", "k", "v"]
    seen.clear()
    alone = World(tmp_path / "alone", False, lambda s: s.keyed("n", tg.count(), key="k").to("noop"))
    alone.run(0, rows(0), 2, 1)
    assert seen == {"0": ["k", "at"]}, "the first reader of a source notes when its rows arrived"


@pytest.mark.parametrize("combine", [False, True])
def test_a_rehearsal_has_the_same_frames(tmp_path, combine):
    """They take rows and return none."""
    world = World(tmp_path, combine)
    world.compiler = world.compiler.rehearsing()
    found = world.run(0, rows(0), 2, 1)
    assert {name: table.num_rows for name, table in found.items()} == dict.fromkeys(found, 0)
    assert TASK not in found["sums"].column_names
