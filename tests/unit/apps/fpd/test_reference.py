"""The verifier: brute force on windows that are small enough to count by eye; faults are found."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from tests.unit.apps.fpd.by_hand import ByHand
from tidegate.apps.application import Settings, Verdict
from tidegate.apps.fpd.application import changes_of, verdict
from tidegate.apps.fpd.itemsets import encoded
from tidegate.apps.fpd.options import FpdOptions
from tidegate.apps.fpd.reference import Change, StateRow, by_brute_force, faults, replayed
from tidegate.apps.fpd.tweets import Tweets
from tidegate.workload.parse import parse_profile

TWEETS = [(1, 2, 3), (1, 2, 3), (1, 2), (4,), (4,), (5,)]
RIGHT = by_brute_force(TWEETS, threshold=2, largest=4)


def test_brute_force() -> None:
    assert RIGHT.counts[1, 2] == 3
    assert RIGHT.counts[5,] == 1
    assert RIGHT.maximal == {(1, 2, 3), (4,)}
    assert RIGHT.above == {(1, 2): 1, (1, 3): 1, (2, 3): 1, (1,): 2, (2,): 2, (3,): 2}
    assert by_brute_force(TWEETS, threshold=2, largest=2).maximal == {
        (1, 2),
        (1, 3),
        (2, 3),
        (4,),
    }


def good() -> tuple[dict, list[Change]]:
    run = ByHand(threshold=2)
    for words in TWEETS:
        run.batch([(1, words)])
    run.settle()
    return run.records(), run.changes


def test_a_right_run_has_no_faults() -> None:
    assert faults(RIGHT, *good()) == []


def test_wrong_answers_are_found() -> None:
    state, changes = good()
    fours = StateRow(count=2, above=0, maximal=True)
    assert state[4,] == fours
    for wrong, said in (
        (replace(fours, count=3), "1 itemsets have a wrong count"),
        (replace(fours, above=1), "1 itemsets have not heard"),
        (replace(fours, maximal=False), "1 itemsets are wrongly maximal"),
    ):
        (fault,) = faults(RIGHT, state | {(4,): wrong}, changes)
        assert fault.startswith(said)
    missing = {pattern: row for pattern, row in state.items() if pattern != (5,)}
    assert faults(RIGHT, missing, changes) == ["1 itemsets have a wrong count"]
    extra = state | {(9,): StateRow(1, 0, False)}
    assert faults(RIGHT, extra, changes) == ["1 itemsets have a wrong count"]


def test_wrong_reports_are_found() -> None:
    state, changes = good()
    last = max(changes, key=lambda change: change.at_us)
    lost = [change for change in changes if change is not last]
    assert any("lead to a result with 1 wrong" in one for one in faults(RIGHT, state, lost))
    twice = faults(RIGHT, state, [*changes, last])
    assert twice == ["1 changes were reported of what was so already"]


def test_reports_are_replayed_by_time_not_by_place() -> None:
    changes = [Change(2, (1,), False), Change(3, (2,), True), Change(1, (1,), True)]
    assert replayed(changes) == ({(2,)}, 0)


@pytest.fixture(scope="module")
def finished() -> tuple:
    """A run of the application without Spark: its tweets, changes, options, state and sink rows."""
    options = FpdOptions(window=200, threshold=3)
    settings = Settings(rate=parse_profile("constant:300"), seconds=2.0)
    tweets = Tweets.of_window(options.window, settings.seed)
    changes = changes_of(settings, options)
    words = [
        tuple(word for word in row if word < tweets.vocabulary)
        for row in tweets.words(np.arange(len(changes.entering_ms))).tolist()
    ]
    run = ByHand(options.threshold, options.largest)
    run.batch([(1, one) for one in words])
    run.batch([(-1, one) for one in words[: len(changes.leaving_ms)]])
    run.settle()
    state = [
        {
            "itemset": int(encoded(np.array([pattern], dtype=np.int64))[0]),
            "count": row.count,
            "above": row.above,
            "maximal": row.maximal,
        }
        for pattern, row in run.records().items()
    ]
    reported = [
        {"pattern": list(one.pattern), "maximal": one.maximal, "at_us": one.at_us}
        for one in run.changes
    ]
    return tweets, changes, options, pa.Table.from_pylist(state), pa.Table.from_pylist(reported)


def judged(finished: tuple, **other: pa.Table | None) -> Verdict:
    tweets, changes, options, state, reported = finished
    return verdict(
        tweets, changes, options, other.get("state", state), other.get("reported", reported)
    )


def test_the_verdict_on_a_right_run(finished) -> None:
    found = judged(finished)
    assert found.correct, found.said
    assert found.said.endswith("as by brute force")
    assert found.figures["patterns"] > 20
    assert found.figures["reported"] == finished[4].num_rows
    assert 3 < found.figures["candidates_per_tweet"] < 5


def test_the_verdict_on_wrong_runs(finished) -> None:
    state, reported = finished[3], finished[4]
    for other in (
        {"state": state.slice(1)},
        {"state": state.slice(0, 0)},
        {"reported": reported.slice(1)},
        {"reported": None},
    ):
        found = judged(finished, **other)
        assert not found.correct
        assert not found.said.endswith("as by brute force")
