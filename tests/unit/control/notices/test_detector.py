"""What begins and ends in the records of a run, each once, whatever happens in it."""

import json
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.pipeline_worlds import measured
from tidegate.control.control_failure import ControlFailure
from tidegate.control.decision import hold
from tidegate.control.measurement import Measurement
from tidegate.control.no_effect import NoEffect
from tidegate.control.notice import (
    AT_MAXIMUM,
    CONTROL_FAILED,
    KINDS,
    NO_EFFECT,
    SHEDDING,
    TARGET_MISSED,
    Notice,
)
from tidegate.control.notices.detector import (
    BELOW_MAXIMUM_S,
    FAILED_TICKS,
    KEEPS_ALL_S,
    WORKS_AGAIN_S,
    NoticeDetector,
)
from tidegate.control.record import Record
from tidegate.control.row_counts import SourceCount

ASSEMBLY = {
    "bounds": {"least": 1, "most": 8},
    "limits": {"dry_run": False},
    "target": {"latency_s": 2.0, "percentile": None},
}
USELESS = NoEffect(
    since_s=1.0,
    segment="main",
    times=3,
    from_cores=2,
    to_cores=8,
    duration_ratio=1.0,
    expected_ratio=0.5,
    cause="sink",
    why="The likely cause is the sink",
    again_s=300.0,
)


def record(
    tick: int,
    *,
    latency_s: float | None = 1.0,
    cores: int = 4,
    keep: float = 1.0,
    shed: int = 0,
    no_effect: NoEffect | None = None,
    backlog: float = 10.0,
    assembly: dict[str, object] | None = None,
    policy: str = "latency",
) -> Record:
    seen: Measurement = measured(tick, cores=cores, latency_s=latency_s, backlog=backlog)
    sources = (SourceCount(name="ads", offered=1000, kept=1000 - shed),)
    return Record(
        tick=tick,
        policy=policy,
        target_s=2.0,
        measurement=replace(seen, keep=keep, sources=sources),
        decision=hold("nothing to do"),
        acted=False,
        no_effect=no_effect,
        assembly=assembly or (ASSEMBLY if tick == 1 else None),
    )


def at_s(tick: int) -> float:
    return 1_700_000_000.0 + tick


def failure(tick: int, ticks: int) -> ControlFailure:
    return ControlFailure(at_s(tick - ticks + 1), ticks, "OSError: no route")


def seen(detector: NoticeDetector, *records: Record) -> list[Notice]:
    return [notice for one in records for notice in detector.observe(one)]


TICKS = st.lists(
    st.fixed_dictionaries(
        {
            "latency_s": st.sampled_from([None, 1.0, 3.0]),
            "cores": st.sampled_from([4, 8]),
            "keep": st.sampled_from([1.0, 0.5]),
            "no_effect": st.sampled_from([None, USELESS]),
            "fails": st.sampled_from([0, 0, 0, 1, 3, 5]),
            "times": st.sampled_from([1, 3, 12, 40]),
        }
    ),
    max_size=25,
)


@settings(deadline=None)
@given(TICKS, st.sampled_from([1.0, 10.0, 30.0]))
def test_every_beginning_has_one_end_in_order(
    spans: list[dict[str, object]], missed_s: float
) -> None:
    detector = NoticeDetector(missed_s)
    found: list[Notice] = []
    tick = 0
    for span in spans:
        wishes = {name: span[name] for name in ("latency_s", "cores", "keep", "no_effect")}
        for _ in range(span["times"]):  # type: ignore[call-overload]
            tick += 1
            found += detector.observe(record(tick, **wishes))  # type: ignore[arg-type]
        for ticks in range(1, span["fails"] + 1):  # type: ignore[operator]
            tick += 1
            found += detector.failed(failure(tick, ticks), at_s(tick))
    found += detector.over(at_s(tick + 1))
    assert detector.over(at_s(tick + 2)) == ()
    assert [one.at_s for one in found] == sorted(one.at_s for one in found)
    for kind in KINDS:
        mine = [one for one in found if one.kind == kind]
        assert [one.ended for one in mine] == [False, True] * (len(mine) // 2), kind
        for begun, ended in zip(mine[::2], mine[1::2], strict=True):
            assert begun.since_s == ended.since_s <= begun.at_s <= ended.at_s
        if kind == TARGET_MISSED:
            assert all(one.lasted_s >= missed_s for one in mine[::2])
    for one in found:
        document = json.loads(json.dumps(one.document("shop"), allow_nan=False))
        assert document["text"].startswith("shop: ")
        assert document["state"] == ("ended" if one.ended else "began")


def test_a_target_missed_for_long_is_told_once_and_once_that_it_is_met() -> None:
    detector = NoticeDetector(30.0)
    late = [record(tick, latency_s=4.21) for tick in range(1, 101)]
    (begun,) = seen(detector, *late)
    assert (begun.kind, begun.ended, begun.at_s - begun.since_s) == (TARGET_MISSED, False, 30.0)
    assert begun.what == (
        "the target of 2 s has been missed for 30 s: mean latency 4.21 s at 1,000 rows/s on 4 cores"
    )
    assert begun.why == "nothing to do"
    assert begun.figures["latency_s"] == 4.21
    assert begun.figures["target_s"] == 2.0
    met = [record(tick, latency_s=1.9) for tick in range(101, 130)]
    (ended,) = seen(detector, *met)
    assert ended.ended and ended.at_s == at_s(111)
    assert ended.what == "the target of 2 s is met again, after 111 s"


def test_a_target_on_a_percentile_is_judged_by_it() -> None:
    detector = NoticeDetector(5.0)
    p95 = {**ASSEMBLY, "target": {"latency_s": 2.0, "percentile": 95}}
    records = [record(1, latency_s=1.6, assembly=p95)]
    records += [record(tick, latency_s=1.6) for tick in range(2, 20)]
    (begun,) = seen(detector, *records)
    assert "p95 latency 2.08 s" in begun.what


def test_a_pipeline_that_hangs_misses_its_target() -> None:
    detector = NoticeDetector(30.0)
    records = [record(1), *(record(tick, latency_s=None) for tick in range(2, 40))]
    (begun,) = seen(detector, *records)
    assert begun.kind == TARGET_MISSED
    quiet = [record(tick, latency_s=None, backlog=0.0) for tick in range(1, 100)]
    assert seen(NoticeDetector(30.0), *quiet) == [], "nothing waits, so nothing is late"


def test_another_patience_holds_at_once() -> None:
    detector = NoticeDetector(1000.0)
    assert seen(detector, *(record(tick, latency_s=4.0) for tick in range(1, 50))) == []
    detector.missed_after(20.0)
    assert len(seen(detector, record(50, latency_s=4.0))) == 1


def test_the_maximum_is_told_when_it_lasts() -> None:
    detector = NoticeDetector()
    blip = [record(tick, cores=8 if tick % 5 else 4) for tick in range(1, 40)]
    assert seen(detector, *blip) == []
    (begun,) = seen(detector, *(record(tick, cores=8) for tick in range(41, 60)))
    assert (begun.kind, begun.figures["most_cores"]) == (AT_MAXIMUM, 8.0)
    assert begun.what == "the maximum of 8 cores is reached, at 1,000 rows/s: no more can be added"
    below = [record(60 + tick) for tick in range(round(BELOW_MAXIMUM_S) + 1)]
    assert seen(detector, *below[:-1]) == []
    (ended,) = seen(detector, below[-1])
    assert ended.ended


@pytest.mark.parametrize(
    "changes",
    [
        {"assembly": {**ASSEMBLY, "bounds": {"least": 8, "most": 8}}},
        {"assembly": {**ASSEMBLY, "limits": {"dry_run": True}}},
        {"policy": "static"},
    ],
    ids=["one number of cores", "dry run", "static"],
)
def test_a_maximum_that_is_no_news(changes: dict[str, object]) -> None:
    detector = NoticeDetector()
    records = [record(tick, cores=8, **changes) for tick in range(1, 40)]  # type: ignore[arg-type]
    assert seen(detector, *records) == []


def test_shedding_is_told_at_once_and_its_end_with_the_rows() -> None:
    detector = NoticeDetector()
    assert seen(detector, record(1)) == []
    (begun,) = seen(detector, *(record(tick, keep=0.4, shed=600) for tick in range(2, 12)))
    assert (begun.kind, begun.at_s, begun.figures["keep"]) == (SHEDDING, at_s(2), 0.4)
    assert begun.what == "rows are shed: 40 % are kept at 1,000 rows/s on 4 cores"
    flutters = [record(12 + n, keep=1.0 if n % 3 else 0.9, shed=100) for n in range(9)]
    assert seen(detector, *flutters) == []
    (ended,) = seen(detector, *(record(21 + n) for n in range(round(KEEPS_ALL_S) + 1)))
    assert ended.what == "no row is shed any more; 6,900 rows were, after 29 s"
    assert ended.figures["shed_rows"] == 6900.0


def test_shedding_by_class_is_shedding() -> None:
    one = record(1)
    classes = replace(one.measurement, keep_by_class={"gold": 1.0, "rest": 0.2})
    (begun,) = NoticeDetector().observe(replace(one, measurement=classes))
    assert begun.kind == SHEDDING


def test_a_tick_that_fails_is_forgotten_and_several_are_told() -> None:
    detector = NoticeDetector()
    seen(detector, record(1))
    for ticks in range(1, FAILED_TICKS):
        assert detector.failed(failure(1 + ticks, ticks), at_s(1 + ticks)) == ()
    (begun,) = detector.failed(failure(4, FAILED_TICKS), at_s(4))
    assert (begun.kind, begun.since_s) == (CONTROL_FAILED, at_s(2))
    assert "control has failed since" in begun.what and "for 3 ticks (OSError" in begun.what
    assert detector.failed(failure(5, 4), at_s(5)) == ()
    works = [record(6 + n) for n in range(round(WORKS_AGAIN_S) + 1)]
    assert seen(detector, *works[:-1]) == []
    (ended,) = seen(detector, works[-1])
    assert ended.what == "control works again, after 14 s"


def test_a_loop_that_ends_for_good_is_told_at_once() -> None:
    detector = NoticeDetector()
    (begun,) = detector.failed(failure(1, 1), at_s(1), final=True)
    assert begun.what.endswith("it has ended for good")
    (ended,) = detector.over(at_s(9))
    assert ended.what == "the run ended while its control failed, after 8 s"


def test_scale_outs_without_effect_are_told_with_their_cause() -> None:
    detector = NoticeDetector()
    found = seen(detector, record(1), record(2, no_effect=USELESS), record(3, no_effect=USELESS))
    assert [(one.kind, one.what) for one in found] == [(NO_EFFECT, USELESS.words)]
    assert found[0].figures["scale_outs"] == 3.0
    (ended,) = seen(detector, record(4))
    assert ended.what == "more cores may be added again, after 2 s"


def test_a_record_keeps_its_notices() -> None:
    detector = NoticeDetector()
    one = record(1, keep=0.5)
    told = replace(one, notices=detector.observe(one))
    assert len(told.notices) == 1
    assert Record.from_json(told.to_json()) == told
    assert Counter(notice.kind for notice in told.notices) == {SHEDDING: 1}
