"""What `bench clusters` asks for, and what it makes of a run in which a host is lost."""

import threading
from dataclasses import replace

import pytest
from benchmarks import clusters
from benchmarks.clusters_bodies.loss import Loss, held_again_s, longest_gap_s

from tests.helpers.past_runs import START_S, past
from tidegate.benching import Options
from tidegate.errors import AskedWrongly


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ({"onyl": "hosts"}, "no option '--onyl'; did you mean 'only'?"),
        ({"only": "mesos"}, "no cluster 'mesos' here; give hosts or yarn or s3"),
        ({"seconds": "soon"}, "--seconds soon is not possible; give 30 to 3600 seconds"),
        ({"seconds": "5"}, "--seconds 5 is not possible"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_starts(extra, said: str) -> None:
    with pytest.raises(AskedWrongly) as told:
        clusters.asked_of(Options(extra=extra))
    assert said in str(told.value)


def test_without_options_all_clusters_run() -> None:
    asked = clusters.asked_of(Options(quick=True))
    assert (asked.bodies, asked.seconds, asked.target_s) == (("hosts", "yarn", "s3"), 90.0, 4.0)


def test_a_host_is_lost_once_and_comes_back_only_as_long_as_the_run_lasts() -> None:
    lost, back = threading.Event(), threading.Event()

    def lose():
        lost.set()
        return back.set

    loss = Loss(2.0, lose)
    records = [tick.record for tick in past([1] * 6, [1] * 6)]
    for record in records[:2]:
        loss.watch(record)
    assert loss.at_s is None
    for record in records[2:]:
        loss.watch(record)
    # Two seconds after the first record with rows.
    assert loss.at_s == START_S + 3
    loss.end()
    assert lost.is_set()
    assert not back.is_set()
    assert loss.failure is None


def test_a_host_that_could_not_be_lost_is_told() -> None:
    def lose():
        raise OSError("no such host")

    loss = Loss(0.0, lose)
    loss.watch(past([1], [1])[0].record)
    loss.end()
    assert "no such host" in str(loss.failure)


def test_how_long_the_target_was_missed_after_the_loss() -> None:
    records = [tick.record for tick in past([1] * 10, [1] * 10, missed=(1, 5, 6))]
    assert held_again_s(records, START_S + 4, 2.0) == 3.0
    assert held_again_s(records, START_S + 8, 2.0) == 0.0
    assert held_again_s(records, None, 2.0) is None


def test_the_longest_gap_is_between_batches_that_follow_each_other() -> None:
    records = [tick.record for tick in past([1] * 8, [1] * 8)]
    assert longest_gap_s(records) == 1.0
    without = [replace(r, measurement=replace(r.measurement, segments=())) for r in records[3:6]]
    assert longest_gap_s(records[:3] + without + records[6:]) == 4.0
    assert longest_gap_s([]) == 0.0


def test_aims_are_missed_where_counts_differ_or_no_host_was_lost() -> None:
    row = {
        "cluster": "s3",
        "within_target": 0.95,
        "verified": True,
        "lost": True,
        "new_executor_extra_s": 1.0,
    }
    assert [aim.met for aim in clusters.aims_of(row)] == [True, True, True]
    assert [aim.met for aim in clusters.aims_of(row | {"lost": False})] == [True, False, True]
    assert [aim.met for aim in clusters.aims_of(row | {"verified": False})] == [True, False, True]
    worse = row | {"within_target": None, "new_executor_extra_s": 3.1}
    assert [aim.met for aim in clusters.aims_of(worse)] == [False, True, False]
