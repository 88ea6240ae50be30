"""Figures 10 to 13 from made-up runs."""

import pytest

from tests.unit.papers.elasticutor.runs import done
from tidegate.apps.micro.options import MicroOptions
from tidegate.papers.elasticutor import parameters, scaling, state_sizes
from tidegate.papers.elasticutor.one_executor import Load, experiment


def test_every_load_has_one_task_and_all() -> None:
    for quick in (False, True):
        for tail in (False, True):
            wanted = scaling.points(quick=quick, tail=tail)
            assert len(set(wanted)) == len(wanted)
            for load in {one.load for one in wanted}:
                assert {scaling.Scaled(load, 1), scaling.Scaled(load, 24)} <= set(wanted)


def test_scaling_is_judged_against_linear() -> None:
    found = {one: done(100.0 * one.tasks * 0.8) for one in scaling.points(quick=False)}
    found |= {one: done(80.0) for one in found if one.tasks == 1}
    assert scaling.of_linear(found, scaling.USUAL) == pytest.approx(1.0)
    assert all(aim.met for aim in scaling.throughput_aims(found))
    found[scaling.Scaled(scaling.USUAL, 24)] = done(800.0)
    assert not any(aim.met for aim in scaling.throughput_aims(found))
    rows = scaling.throughput_rows(found, {(scaling.USUAL, 256): 180_000.0})
    assert rows[-1].ours == 180_000


def test_the_papers_words_are_beside_the_loads_that_they_are_about() -> None:
    loads = {(one.row_ms, one.tuple_bytes) for one in (*scaling.LOADS, scaling.LIGHTEST)}
    assert {(0.01, 128), (1.0, 2048), (1.0, 8192)} < loads
    found = {one: done(100.0) for one in scaling.points(quick=False)}
    assert scaling.LIGHTEST not in {one.load for one in found}, "two cores cannot make its tuples"
    rows = scaling.throughput_rows(found, {(scaling.LIGHTEST, 256): 5e5})
    said = {row.name: row.paper for row in rows}
    assert said["0.01 ms, 128 B, 256 cores, simulated: rows/s"] == "no more than 16 cores"
    assert said["1 ms, 8192 B: share of linear at 24 tasks"] == "no more than 16 cores"
    assert said["1 ms, 128 B: share of linear at 24 tasks"] == "scales to 256 cores"
    assert said["1 ms, 2048 B: share of linear at 24 tasks"] is None


def test_a_tail_that_grows_is_found() -> None:
    found = {one: done(1.0) for one in scaling.points(quick=True, tail=True)}
    assert all(aim.met for aim in scaling.tail_aims(found))
    found[scaling.Scaled(scaling.USUAL, 24)] = done(1.0, p99_latency_s=1.2)
    assert not any(aim.met for aim in scaling.tail_aims(found))
    rows = {row.name: row.ours for row in scaling.tail_rows(found)}
    assert rows["1 ms, 128 B: 24 tasks over 1"] == 2.0


def test_a_percentile_needs_a_hundred_batches() -> None:
    found = {one: done(1.0, batches=100) for one in scaling.points(quick=True, tail=True)}
    assert scaling.TAIL_BATCHES >= scaling.LEAST_BATCHES == 100
    assert scaling.tail_name(found) == "99th percentile of latency"
    found[scaling.Scaled(scaling.USUAL, 1)] = done(1.0, batches=99)
    assert scaling.tail_name(found) == "longest batch"
    assert any("longest batch" in row.name for row in scaling.tail_rows(found))


def test_the_simulated_executor_has_all_cores() -> None:
    made = experiment(Load(row_ms=0.1, tuple_bytes=8192, state_kb=1024.0, omega=16.0), 4)
    assert (made.nodes.cores, made.executors) == (32, 1)
    assert made.operators[0].work_s == pytest.approx(0.0001)
    assert (made.operators[0].bytes_in, made.shard_bytes) == (8192.0, 2.0**20)


@pytest.mark.parametrize("quick", [True, False])
def test_state_of_every_size_fits(quick: bool) -> None:
    wanted = state_sizes.points(quick=quick)
    assert len(set(wanted)) == len(wanted)
    for one in wanted:
        MicroOptions(state_kb=one.state_kb, shards=one.shards)  # refuses more than 2 GB
        assert quick or state_sizes.seconds_of(one, quick=quick) * one.omega / 60.0 >= 1.0
    found = {one: done(100.0, state_bytes_per_s=3e6) for one in wanted}
    assert all(aim.met for aim in state_sizes.aims(found))
    found = {one: done(100.0, state_bytes_per_s=1e6) for one in wanted}
    assert [aim.met for aim in state_sizes.aims(found)] == [True, False], "less than a shard moved"
    rows = {row.name: row for row in state_sizes.compared(found, {(16.0, 32.0): 1.0})}
    assert len(rows) == 2 * len(found) + (1 if quick else 2), "each has a name of its own"
    assert all(f"{one.shards} shards" in " ".join(rows) for one in wanted)


def test_32_mb_are_compared_with_32_kb_in_as_many_shards() -> None:
    found = {one: done(100.0, state_bytes_per_s=3e6) for one in state_sizes.points(quick=False)}
    found[state_sizes.LARGEST] = done(40.0)
    found[state_sizes.BESIDE_LARGEST] = done(80.0)
    rows = {row.name: row for row in state_sizes.compared(found, {})}
    kept = rows["32768 KB, omega 16, 24 tasks, 48 shards: throughput over that with 32 KB"]
    assert (kept.paper, kept.ours) == ("does not scale", 0.5)
    assert all(aim.met for aim in state_sizes.aims(found)), "it has no aim"


def test_the_grid_is_compared_with_static() -> None:
    grid = {("default", y, z): float(y * z) for y in (1, 32) for z in (16, 256)}
    beside = {("default", "static"): 100.0, ("default", "resource-centric"): 100.0}
    assert all(aim.met for aim in parameters.aims(grid, beside))
    assert len(parameters.compared(grid, beside)) == 6
    beside["default", "static"] = 1e5
    assert [aim.met for aim in parameters.aims(grid, beside)] == [False, True]
