"""What DRS's experiments make of measured values."""

import pytest

from tests.helpers.pipeline_worlds import measured
from tidegate.control.decision import hold
from tidegate.control.record import Record
from tidegate.errors import AskedWrongly
from tidegate.papers.drs.bulk import Bar
from tidegate.papers.drs.bulk import told as bulk_told
from tidegate.papers.drs.overhead import table_2
from tidegate.papers.drs.runs import gently
from tidegate.papers.drs.six_splits import asked_apps, beside, chosen_splits
from tidegate.papers.drs.split_sojourns import SplitSojourns, spearman, told
from tidegate.papers.drs.timeline import Timeline
from tidegate.papers.figure import Asked
from tidegate.papers.measured import Sojourns, after
from tidegate.workload.profile import constant, uniform


def six(**changes: object) -> SplitSojourns:
    means = {(10, 11, 1): 2.0, (11, 10, 1): 2.5, (9, 12, 1): 4.0}
    values: dict[str, object] = {
        "app": "vld",
        "measured": {split: Sojourns(mean, 0.1) for split, mean in means.items()},
        "modelled_s": {(10, 11, 1): 2.1, (11, 10, 1): 2.4, (9, 12, 1): 3.5},
        "recommended": (10, 11, 1),
        "by_drs": {"mmk": (10, 11, 1)},
        "by_drs_s": dict.fromkeys(means, 1.0),
        "uncut": Sojourns(1.0, 0.1),
    }
    return SplitSojourns(**{**values, **changes})  # type: ignore[arg-type]


def test_six_splits_are_judged() -> None:
    one = six()
    assert one.best == (10, 11, 1)
    assert one.off == 1.0
    assert one.apart == [(10, 11, 1), (11, 10, 1), (9, 12, 1)]
    assert one.alike(one.apart) == pytest.approx(1.0)
    assert all(aim.met for aim in told([one]).aims)


def test_the_steadiest_split_is_told_apart_from_the_best() -> None:
    measured = {
        (10, 11, 1): Sojourns(2.0, 0.4),
        (11, 10, 1): Sojourns(2.5, 0.2),
        (9, 12, 1): Sojourns(4.0, 0.9),
    }
    one = six(measured=measured)
    assert (one.best, one.steadiest) == ((10, 11, 1), (11, 10, 1))
    rows = {row.name: row for row in told([one]).compared}
    assert rows["vld: split with the least deviation"].paper == "10:11:1"
    assert rows["vld: split with the least deviation"].ours == "11:10:1"
    (alike,) = (row for name, row in rows.items() if "rank correlation" in name)
    assert isinstance(alike.paper, str), "the paper prints no coefficient"


def test_further_runs_tell_whether_a_better_split_was_only_lucky() -> None:
    lucky = {(10, 11, 1): 2.2, (11, 10, 1): 2.0, (9, 12, 1): 4.0}
    measured = {split: Sojourns(mean, 0.1) for split, mean in lucky.items()}
    once = six(measured=measured)
    assert once.off == pytest.approx(1.1)
    again = {(10, 11, 1): Sojourns(2.0, 0.1), (11, 10, 1): Sojourns(2.04, 0.1)}
    assert six(measured=measured, again=again).off == 1.0
    again[(11, 10, 1)] = Sojourns(1.6, 0.1)
    assert six(measured=measured, again=again).off == pytest.approx(1.25)


def test_splits_that_are_expected_to_be_alike_are_not_ranked() -> None:
    one = six(modelled_s={(10, 11, 1): 2.1, (11, 10, 1): 2.2, (9, 12, 1): 3.5})
    assert one.apart == [(10, 11, 1), (9, 12, 1)]
    turned = six(modelled_s={(10, 11, 1): 2.1, (11, 10, 1): 1.5, (9, 12, 1): 3.5})
    assert turned.apart == [(10, 11, 1), (9, 12, 1)]


def test_two_neighbours_in_five_that_change_places_leave_nine_tenths() -> None:
    assert spearman([1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, 4.0, 3.0, 5.0]) == 0.9


def test_a_wrong_recommendation_order_or_answer_misses_its_aim() -> None:
    assert not told([six(recommended=(9, 12, 1))]).aims[0].met
    assert not told([six(recommended=(1, 1, 20))]).aims[0].met, "it was not even measured"
    slow = {(10, 11, 1): 2.0, (11, 10, 1): 5.0, (9, 12, 1): 4.0}
    measured_s = {split: Sojourns(mean, 0.1) for split, mean in slow.items()}
    assert not told([six(measured=measured_s)]).aims[1].met
    assert not told([six(uncut=Sojourns(9.0, 0.1))]).aims[2].met
    assert not told([six(wrong=("vld: a frame is missing",))]).aims[3].met


def test_near_splits_and_slower_ones_are_run() -> None:
    def expected_s(split: tuple[int, ...]) -> float:
        first, second, _ = split
        slack = (1 - 6 / first, 1 - 6.5 / second)
        return sum(1 / one for one in slack) if min(slack) > 0 else float("inf")

    found = chosen_splits((10, 11, 1), (10, 11, 1), expected_s)
    beside = {(9, 12, 1), (9, 11, 2), (11, 10, 1), (10, 10, 2)}
    assert found[0] == (10, 11, 1)
    assert beside == set(found[1:5]), "all that are one core away"
    times = [expected_s(split) / expected_s(found[0]) for split in found[5:]]
    assert times == pytest.approx([1.3, 1.7, 2.2], rel=0.15)
    assert len(chosen_splits((10, 11, 1), (10, 11, 1), expected_s, quick=True)) == 2


def test_beside_a_split_are_those_that_are_one_core_away_and_keep_up() -> None:
    found = beside((10, 11, 1), lambda split: float("inf") if split[0] < 10 else 1.0)
    assert set(found) == {(11, 10, 1), (10, 10, 2)}


def test_what_was_recommended_before_the_neighbours_ran_is_told_where_it_differs() -> None:
    names = [line.name for line in told([six()]).compared]
    assert not any("before its neighbours ran" in name for name in names)
    lines = {line.name: line.ours for line in told([six(first=(9, 12, 1))]).compared}
    assert lines["vld: recommended before its neighbours ran"] == "9:12:1"


def test_an_unknown_application_is_refused_before_spark_starts() -> None:
    with pytest.raises(AskedWrongly, match="vld or fpd"):
        asked_apps(Asked(extra={"app": "sse"}))


def test_a_gentle_start_keeps_the_profile_afterwards() -> None:
    profile = gently(uniform(1.0, 25.0), 60.0)
    assert profile.rate(3.0) == pytest.approx(0.25 * 13.0, rel=0.1)
    assert [profile.rate(at + 0.5) for at in range(10, 60)] == [
        uniform(1.0, 25.0).rate(at + 0.5) for at in range(10, 60)
    ]
    assert gently(constant(100.0), 20.0).count(20_000) == pytest.approx(1250, abs=2)


def test_the_closer_model_is_told() -> None:
    bar = Bar(rate=5.0, split=(2, 4, 1), measured_s=2.0, mmk_s=0.5, gigk_s=1.5, micro_batch_s=2.1)
    outcome = bulk_told([bar])
    assert all(aim.met for aim in outcome.aims)
    assert outcome.compared[-1].ours == "GI/G/k in 1 of 1"


def test_each_load_is_drawn_and_every_bar_is_judged() -> None:
    near = Bar(rate=5.0, split=(2, 4, 1), measured_s=2.0, mmk_s=0.5, gigk_s=0.4, micro_batch_s=2.1)
    off = Bar(rate=6.0, split=(3, 3, 1), measured_s=2.0, mmk_s=1.9, gigk_s=0.4, micro_batch_s=2.5)
    outcome = bulk_told([near, off])
    assert [aim.met for aim in outcome.aims] == [False, False, True]
    assert [aim.value for aim in outcome.aims] == [1, pytest.approx(0.25), 0]
    assert outcome.compared[-1].ours == "GI/G/k in 0 of 2"
    assert [one.paper for one in outcome.compared] == [None, None, "GI/G/k"]
    assert outcome.compared[0].ours == "2000; 500; 400; 2100 ms"
    assert [picture.title[:9] for picture in outcome.pictures] == ["vld at 5 ", "vld at 6 "]
    assert [line.y for line in outcome.pictures[1].lines] == [(2.0,), (1.9,), (0.4,), (2.5,)]


def test_the_better_split_is_told_as_measured_and_by_each_model() -> None:
    bars = [
        Bar(rate=5.0, split=(2, 4, 1), measured_s=2.0, mmk_s=0.6, gigk_s=0.4, micro_batch_s=2.1),
        Bar(rate=5.0, split=(3, 3, 1), measured_s=1.0, mmk_s=0.5, gigk_s=0.5, micro_batch_s=2.2),
        Bar(rate=6.0, split=(2, 4, 1), measured_s=2.0, mmk_s=0.6, gigk_s=0.4, micro_batch_s=2.1),
    ]
    told_of = {one.name: one for one in bulk_told(bars).compared if "better split" in one.name}
    assert {name: (one.paper, one.ours) for name, one in told_of.items()} == {
        "better split at 5/s: measured": ("2:4:1", "3:3:1"),
        "better split at 5/s: M/M/k": ("3:3:1", "3:3:1"),
        "better split at 5/s: GI/G/k": ("2:4:1", "2:4:1"),
        "better split at 5/s: micro-batch model": (None, "2:4:1"),
    }


def test_a_bar_with_wrong_answers_does_not_count() -> None:
    bar = Bar(rate=5.0, split=(2, 4, 1), measured_s=2.0, mmk_s=0.5, gigk_s=1.5, micro_batch_s=2.1)
    outcome = bulk_told([bar], ["vld: a frame is missing"])
    assert [aim.name for aim in outcome.wrong] == ["runs with wrong answers"]
    assert "vld: a frame is missing" in outcome.notes


def test_table_2_is_measured() -> None:
    outcome = table_2(Asked(quick=True, say=lambda _: None))
    assert len(outcome.compared) == 6


def timeline(ticks: list[tuple[float | None, int]]) -> Timeline:
    """A run of one operator: its sojourn and its tasks, tick by tick."""
    records = [
        Record(
            tick=tick,
            policy="drs",
            target_s=1.0,
            measurement=measured(tick, cores=tasks, latency_s=latency_s),
            decision=hold(""),
            acted=False,
        )
        for tick, (latency_s, tasks) in enumerate(ticks)
    ]
    (operator,) = (one.name for one in records[0].measurement.operators)
    return Timeline(records, (operator,), 2.0)


def test_a_timeline_tells_splits_and_sojourns_by_the_minute() -> None:
    line = timeline([(1.0, 2), (3.0, 2), (None, 3), (2.0, 3)])
    assert line.splits == [(0.0, (2,)), (1.0, (3,))]
    assert line.shown() == "0.0: 2, 1.0: 3"
    assert [line.cores_at(at) for at in (0.5, 1.0)] == [2, 3]
    assert line.by_minute() == ((0.0, 1.0), (2.0, 2.0))
    assert line.latency_ms(5, 6) is None


def test_what_a_change_costs_is_told_beside_the_usual_difference() -> None:
    calm = [(1.0, 2)] * 4
    steps = timeline([*calm, (1.5, 3), (1.5, 3), (1.2, 3), (1.2, 3)])
    assert steps.increases() == "2.0: +500 (usually 300)"
    assert timeline(calm).increases() == "none"
    assert timeline([*calm, (None, 3), (None, 3)]).increases() == "none", "nothing was completed"


def test_the_time_until_a_target_holds_again() -> None:
    ticks = [(1.0, 2)] * 5 + [(5.0, 2)] * 4 + [(1.0, 4)] * 6
    assert timeline(ticks).back_within_s(4.0, 15.0, 2.0) == pytest.approx(4.0)
    assert timeline([(1.0, 2)] * 12).back_within_s(4.0, 12.0, 2.0) == 0.0
    assert timeline([(5.0, 2)] * 12).back_within_s(4.0, 12.0, 2.0) is None
    assert timeline([(None, 2)] * 12).back_within_s(4.0, 12.0, 2.0) is None, "nothing came out"


def test_records_before_the_run_settled_are_left_out() -> None:
    found = after(timeline([(1.0, 2)] * 10).records, 3.0, 6.0)
    assert [one.tick for one in found] == [3, 4, 5, 6]
