"""The pure parts of `bench autoscalers`: what is asked for, kept, judged and drawn."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks import autoscalers
from benchmarks.autoscalers_bodies import kept
from benchmarks.autoscalers_bodies.contest import (
    DS2,
    LOADS,
    OURS,
    POLICIES,
    QUERIES,
    STATIC,
)
from benchmarks.autoscalers_bodies.judged import Cell, aims, cells
from benchmarks.autoscalers_bodies.kept import Asked, Result
from benchmarks.autoscalers_bodies.picture import draw
from benchmarks.autoscalers_bodies.worlds import HotShards, setting
from hypothesis import given
from hypothesis import strategies as st

from tidegate.apps.nexmark.events import NexmarkEvents
from tidegate.benching import Options
from tidegate.control.names import PIPELINE_POLICIES
from tidegate.errors import AskedWrongly
from tidegate.workload.profile import constant

ASKED = Asked(
    body="sim", query="q3", load="cosine", policy=OURS, seconds=60.0, minute_s=2.0, seed=1
)


def result(
    policy: str = OURS,
    within: float = 0.99,
    core_seconds: float = 1000.0,
    changes: int = 10,
    *,
    query: str = "q3",
    load: str = "cosine",
    verified: bool | None = None,
) -> Result:
    return Result(
        asked=replace(ASKED, policy=policy, query=query, load=load),
        within=within,
        core_seconds=core_seconds,
        changes=changes,
        p95_ms=2000.0,
        oracle_core_seconds=800.0,
        oracle_within=1.0,
        verified=verified,
        took_s=1.0,
    )


def cell(*results: Result) -> Cell:
    return Cell("q3", "cosine", {one.asked.policy: one for one in results})


def whole(changes: Mapping[str, int], ours: Mapping[str, float], query: str = "q3") -> list[Result]:
    """Every load and policy of a query: what ours has within the target under each load."""
    return [
        result(
            policy,
            ours.get(load, 0.99) if policy == OURS else 0.98,
            900.0 if policy == OURS else 1000.0,
            changes.get(policy, 0),
            query=query,
            load=load,
            verified=True,
        )
        for load in LOADS
        for policy in POLICIES
    ]


@pytest.mark.parametrize(
    ("others", "first", "cheapest"),
    [
        ([("flow", 0.98, 1100.0)], True, True),
        ([("flow", 0.99, 1000.0)], True, True),  # alike in both
        ([("flow", 0.991, 1100.0)], False, True),
        ([("flow", 0.971, 990.0)], True, False),
        ([("flow", 0.969, 500.0)], True, True),  # cheap, but three points less
        ([("flow", 1.0, 999.0)], False, False),
        ([("flow", 0.98, 1100.0), (STATIC, 1.0, 2000.0)], False, True),
    ],
)
def test_a_load_is_won_by_who_is_first_and_cheapest(others, first: bool, cheapest: bool) -> None:
    found = cell(result(), *(result(*one) for one in others))
    assert (found.is_first, found.is_cheapest, found.is_won) == (
        first,
        cheapest,
        first and cheapest,
    )


def test_a_cell_says_how_it_ended() -> None:
    found = cell(result(), result("flow", 0.995, 700.0), result(STATIC, 1.0, 2000.0))
    assert found.words == (
        "q3, cosine: ours 99.0 % at 1.25 times the oracle's, not won; first static peak with"
        " 100.0 %, the cheapest within two points flow at 0.88"
    )


def test_a_query_is_won_with_five_loads_and_no_more_changes_than_ds2() -> None:
    behind = {LOADS[0]: 0.9}
    results = whole({OURS: 10, DS2: 10}, behind)
    kept_there = {one.asked: one for one in results}
    first, second, answers = aims(["q3"], cells(list(kept_there), kept_there))
    assert (first.value, first.met, second.value, second.met) == (5, True, 1.0, True)
    assert (answers.value, answers.met) == (42, True)
    worse = {one.asked: one for one in whole({OURS: 11, DS2: 10}, {**behind, LOADS[1]: 0.9})}
    first, second, _ = aims(["q3"], cells(list(worse), worse))
    assert (first.value, first.met, second.met) == (4, False, False)


def test_an_aim_needs_every_run() -> None:
    there = {one.asked: one for one in whole({}, {})}
    there.popitem()
    first, second, _ = aims(["q3"], cells(list(there), there))
    assert first.value is None and second.value is None and not (first.met or second.met)
    assert [aim.value for aim in aims(["q3"], [])] == [None, None]


def test_wrong_answers_miss_an_aim() -> None:
    told = [result(verified=True), result("flow", verified=False)]
    (aim,) = aims([], [cell(*told)])
    assert (aim.value, aim.aim, aim.met) == (1, "= 2", False)


results_drawn = st.builds(
    result,
    st.sampled_from(sorted(POLICIES)),
    st.floats(0.0, 1.0),
    st.floats(0.0, 1e5),
    st.integers(0, 500),
    query=st.sampled_from(sorted(QUERIES)),
    load=st.sampled_from(LOADS),
    verified=st.sampled_from([True, False, None]),
)


@given(st.lists(results_drawn, max_size=8))
def test_what_is_kept_is_read_again(tmp_path_factory, results: list[Result]) -> None:
    file = tmp_path_factory.mktemp("kept") / "out" / "kept.jsonl"
    assert kept.read(file) == {}
    for one in results:
        kept.keep(file, one)
    assert kept.read(file) == {one.asked: one for one in results}


def test_a_line_that_was_cut_off_is_run_again(tmp_path: Path) -> None:
    file = tmp_path / "kept.jsonl"
    kept.keep(file, result())
    kept.keep(file, result("flow"))
    file.write_text(file.read_text()[:-40])
    assert list(kept.read(file)) == [ASKED]
    kept.keep(file, result(STATIC))
    assert [asked.policy for asked in kept.read(file)] == [OURS, STATIC]
    other = json.loads(file.read_text().splitlines()[0])
    del other["within"]
    file.write_text(json.dumps(other) + "\n[]\n")
    assert kept.read(file) == {}


def test_what_is_in_the_file_is_not_run_again(tmp_path: Path, monkeypatch) -> None:
    ran: list[Asked] = []

    def pretend(asked: Asked):
        ran.append(asked)
        if len(ran) == 3:
            raise KeyboardInterrupt
        return replace(result(), asked=asked), ()

    monkeypatch.setattr("benchmarks.autoscalers_bodies.simulated.run_simulated", pretend)
    said: list[str] = []
    extra = {"body": "sim", "queries": "q5", "loads": "random", "keep": str(tmp_path / "kept")}
    options = Options(extra=extra, say=said.append)
    with pytest.raises(KeyboardInterrupt):
        autoscalers.run(options)
    first = ran[:2]
    done = autoscalers.run(options)
    assert len(ran) == 3 + len(POLICIES) - 2 and not set(first) & set(ran[3:])
    assert said[0].startswith("2 of 7 runs are in ")
    assert len(done.results) == len(POLICIES)
    ran.clear()
    again = autoscalers.run(replace(options, extra={**extra, "policies": "latency,ds2"}))
    assert not ran and len(again.results) == 2
    autoscalers.run(replace(options, extra={**extra, "policies": "ds2", "seed": "2"}))
    assert [asked.seed for asked in ran] == [2]


def test_all_runs_of_the_contest() -> None:
    runs = autoscalers.contest_of(Options()).runs
    assert len(set(runs)) == len(runs) == 3 * 6 * 7
    assert {one.seconds for one in runs} == {280.0}
    firsts = [one.policy for one in runs[:: len(POLICIES)]]
    assert len(set(firsts)) == len(LOADS), "each load begins with another policy"
    quick = autoscalers.contest_of(Options(quick=True, extra={"policies": "ds2,latency"}))
    assert [one.policy for one in quick.runs[:4]] == [OURS, DS2, DS2, OURS]
    assert quick.runs[0].seconds == 60.0
    assert set(POLICIES.values()) <= set(PIPELINE_POLICIES)


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ({"query": "q3"}, "no option 'query'; did you mean 'queries'?"),
        ({"queries": "q3,q1"}, "--queries: there is no 'q1'"),
        ({"loads": "cosin"}, "--loads: there is no 'cosin'; did you mean 'cosine'?"),
        ({"policies": "threshold"}, "--policies: there is no 'threshold'"),
        ({"body": "flink"}, "there is no body 'flink'"),
        ({"seconds": "soon"}, "--seconds soon is not possible; give 10 to 86400"),
        ({"minute": "0"}, "--minute 0 is not possible"),
    ],
)
def test_what_cannot_be_run_is_refused(extra: dict[str, str], said: str) -> None:
    with pytest.raises(AskedWrongly) as refused:
        autoscalers.contest_of(Options(extra=extra))
    assert said in str(refused.value)


@pytest.mark.parametrize("name", sorted(QUERIES))
def test_the_highest_load_needs_about_a_dozen_tasks(name: str) -> None:
    contested = QUERIES[name]
    there = setting(contested, constant(contested.peak), 20.0, 1)
    assert there.cost.work_s * contested.peak == pytest.approx(contested.busy)
    delta = there.imbalances
    assert delta[0] == 1.0 and (delta >= 1.0).all() and delta[-1] > delta[2]
    assert 10 <= there.peak_cores <= 12


def test_hot_keys_come_and_go_in_the_simulated_world() -> None:
    contested = QUERIES["q11"]
    events = NexmarkEvents(constant(contested.peak), hot_every=5)
    weights = HotShards(contested, events)
    first, later = weights(10.0), weights(13.0)
    assert first.sum() == pytest.approx(1.0) and later.sum() == pytest.approx(1.0)
    # Three bids in four are those of about ten hot bidders a second.
    assert 0.5 < np.sort(first)[-20:].sum() < 0.9
    assert set(np.argsort(first)[-5:]) != set(np.argsort(later)[-5:])
    empty = HotShards(contested, NexmarkEvents(constant(0.0)))
    np.testing.assert_allclose(empty(5.0), 1.0 / len(first))


def test_the_picture_has_a_dot_for_each_policy(tmp_path: Path) -> None:
    found = [
        cell(result(), result("flow", 0.5, 99_000.0)),
        Cell("q11", "random", {OURS: result()}),
    ]
    draw(found, tmp_path / "deep" / "picture.svg")
    drawn = (tmp_path / "deep" / "picture.svg").read_text()
    assert drawn.count("<circle") == len(POLICIES) + 3
    assert "q11" in drawn and "random" in drawn and drawn.endswith("</svg>\n")
    with pytest.raises(AskedWrongly, match="no results to draw"):
        draw([], tmp_path / "none.svg")
