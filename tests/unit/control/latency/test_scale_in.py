"""When cores may be released after a fall of the load, where cores take long to come back."""

from tests.helpers.pipeline_worlds import measured
from tidegate.control.latency.scale_in import FitWords, ScaleIn
from tidegate.control.measurement import Measurement

GRANT_S, MOST = 20.0, 12
HIGH, LOW = 8000.0, 2000.0
WORDS = FitWords(fits="it fits", right="right", would_do="would do")


def tick(at_s: float, rate: float, cores: int) -> Measurement:
    return measured(at_s, rate=rate, cores=cores, batches=False, grant_s=GRANT_S)


def released_after_s(rule: ScaleIn, at_s: float, low_s: float) -> tuple[float | None, float]:
    """Half a minute of the high load, and the low one for a while or until cores are released.

    Returns how long after the fall that was (None: not at all), and the time at the end.
    """
    for second in range(30):
        now = tick(at_s + second, HIGH, MOST)
        rule.notice(now)
        rule.remember(now, MOST)
    fell_s = at_s + 30
    cores = MOST
    found = None
    at = fell_s
    while at < fell_s + low_s:
        now = tick(at, LOW, cores)
        rule.notice(now)
        rule.remember(now, 2)
        if cores == MOST and rule.objection(now, 1, WORDS) is None:
            found, cores = at - fell_s, 2
        at += 1.0
    return found, at


def test_a_load_that_swings_keeps_slow_cores_longer_each_time() -> None:
    rule = ScaleIn(10.0, 0.1)
    waits, at_s = [], 0.0
    for _ in range(4):
        found, at_s = released_after_s(rule, at_s, 50.0)
        waits.append(found)
    assert waits[0] is not None and GRANT_S <= waits[0] < GRANT_S + 3.0
    assert waits[1] is not None and 2 * GRANT_S <= waits[1] < 2 * GRANT_S + 3.0
    assert waits[2] is None, "three times a grant's time is longer than the load stays low"


def test_a_load_that_stays_low_is_answered_sooner_again() -> None:
    rule = ScaleIn(10.0, 0.1)
    at_s = 0.0
    for _ in range(2):
        _, at_s = released_after_s(rule, at_s, 50.0)
    assert rule._fall_patience == 2.0
    for _ in range(3):
        found, at_s = released_after_s(rule, at_s, 400.0)
    assert rule._fall_patience == 1.0
    assert found is not None and found < GRANT_S + 3.0


def test_the_wait_is_remembered() -> None:
    old, new = ScaleIn(10.0, 0.1), ScaleIn(10.0, 0.1)
    old._fall_patience = 4.0
    new.recall(old.learned(), 60.0)
    assert new._fall_patience == 4.0
