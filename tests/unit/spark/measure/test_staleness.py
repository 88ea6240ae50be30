"""Old numbers are said to be old; a batch that runs gets more time."""

from tidegate.spark.measure.staleness import STALE_S, STUCK_S, stale


def test_what_is_quiet_for_longer_than_usual_is_stale() -> None:
    assert stale(STALE_S, longest_s=1.0, running=False) is None
    assert stale(STALE_S + 1.0, longest_s=1.0, running=False) == "no batch ended for 11 s"
    assert stale(STALE_S + 1.0, longest_s=3.0, running=False) is None, "five times the longest"


def test_a_batch_that_runs_is_given_more_time() -> None:
    assert stale(STUCK_S, longest_s=1.0, running=True) is None
    assert stale(STUCK_S + 1.0, longest_s=1.0, running=True) == "no batch ended for 61 s"
    assert stale(STUCK_S + 1.0, longest_s=7.0, running=True) is None, "ten times the longest"
