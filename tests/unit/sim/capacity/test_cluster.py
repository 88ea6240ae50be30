"""The time-stepped cluster, the eight applications, the weeks and the trace reader."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.control.assemble import MACHINE_POLICIES
from tidegate.control.baselines.fixed import GroundTruth
from tidegate.control.constraints import Constraints
from tidegate.control.decision import Decision, hold
from tidegate.control.measurement import Measurement
from tidegate.errors import AskedWrongly
from tidegate.sim.capacity.applications import APPLICATIONS, applications
from tidegate.sim.capacity.backtest import FEWEST_ROWS, TraceForecasts, grid, policies, rows
from tidegate.sim.capacity.cluster import cluster, scale_to_peak, simulate
from tidegate.workload.trace import read_trace
from tidegate.workload.weeks import WEEKS

GREP = APPLICATIONS["grep"]
TRACE = 2000 + 1500 * np.sin(np.arange(200) / 25.0) + 40 * np.cos(np.arange(200) * 1.7)


class Script:
    """Asks for what the script says at the end of each minute."""

    name = "script"

    def __init__(self, asks: dict[int, int]) -> None:
        self._asks = asks
        self.seen: list[Measurement] = []

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        self.seen.append(measurement)
        minute = len(self.seen) - 1
        return Decision(cores=self._asks[minute], reason="s") if minute in self._asks else hold("s")


def test_machines_arrive_after_their_start_up_and_leave_at_once() -> None:
    body = cluster(TRACE, GREP, 0)
    first = int(body.needed()[0])
    run = simulate(Script({4: first + 10, 20: 5}), body)
    assert list(run.machines[4:8]) == [first, first, first, first + 10]
    assert list(run.machines[20:22]) == [first + 10, 5]
    assert (run.scalings, run.started) == (2, 10)


def test_machines_still_starting_are_let_go_first() -> None:
    body = cluster(TRACE, GREP, 0)
    first = int(body.needed()[0])
    run = simulate(Script({4: first + 10, 5: first + 4}), body)
    assert list(run.machines[6:9]) == [first, first + 4, first + 4]


def test_nothing_is_lost_between_load_work_and_backlog() -> None:
    body = cluster(TRACE, GREP, 1)
    script = Script({3: 20, 60: 100, 120: 10})
    run = simulate(script, body)
    arrived = body.load.sum() * 60
    processed = sum(seen.processed_rate for seen in script.seen) * 60
    assert processed + run.backlog[-1] == pytest.approx(arrived)
    full = [
        (seen.processed_rate, tau)
        for seen, tau in zip(script.seen, run.capacity, strict=True)
        if seen.saturated
    ]
    assert full and all(rate == pytest.approx(tau) for rate, tau in full)


@given(
    seed=st.integers(0, 50),
    name=st.sampled_from(sorted(APPLICATIONS)),
    fewer_at=st.lists(st.integers(0, len(TRACE) - 1), min_size=1, max_size=5),
)
@settings(max_examples=40, deadline=None)
def test_ground_truth_is_the_cheapest_that_meets_qos(
    seed: int, name: str, fewer_at: list[int]
) -> None:
    body = cluster(TRACE, APPLICATIONS[name], seed)
    needed = body.needed()
    assert (body.capacity(needed) > body.load).all()
    for minute in fewer_at:
        if needed[minute] > 1:
            fewer = needed.copy()
            fewer[minute] -= 1
            assert not (body.capacity(fewer) > body.load).all()
    run = simulate(GroundTruth(needed.tolist()), body, startup_minutes=0)
    assert (run.machines == needed).all()
    assert run.qos == 1.0
    cycle = body.needed_per_cycle()
    assert (cycle >= needed).all()


def test_the_eight_curves_reach_their_peaks_and_have_their_shapes() -> None:
    assert len(APPLICATIONS) == 8
    for app in APPLICATIONS.values():
        mean = app.mean()
        assert (np.diff(mean) >= 0).all()
        assert mean[app.peak_machines - 1] == pytest.approx(1.04 * app.peak)
        assert mean[-1] * (1 - 3.5 * app.noise) > app.peak
    assert np.ptp(APPLICATIONS["vht"].mean()) == 0.0
    grep, visitors = GREP.mean(), APPLICATIONS["unique-visitor"].mean()
    assert grep[99] / grep[49] > 1.8
    assert visitors[99] / visitors[49] < 1.5


def test_the_trace_is_scaled_to_the_peak() -> None:
    assert scale_to_peak(TRACE, GREP).max() == pytest.approx(32.0)
    with pytest.raises(AskedWrongly, match="Every count of the trace is 0"):
        scale_to_peak(np.zeros(200), GREP)


def test_the_same_seed_gives_the_same_noise_to_every_policy() -> None:
    one, same, other = (cluster(TRACE, GREP, seed) for seed in (3, 3, 4))
    assert (one.capacity_noise == same.capacity_noise).all()
    assert one.training == same.training
    assert (one.capacity_noise != other.capacity_noise).any()


@pytest.mark.parametrize("name", list(WEEKS))
def test_weeks_are_whole_seeded_and_not_alike(name: str) -> None:
    week = WEEKS[name](0)
    assert week.shape == (7 * 24 * 60,)
    assert (week >= 0).all()
    assert (week == WEEKS[name](0)).all()
    assert (week != WEEKS[name](1)).any()


def test_the_weeks_have_what_makes_them_hard() -> None:
    world_cup, tweets, flights = (WEEKS[name](0) for name in list(WEEKS)[:3])
    assert world_cup.max() > 5 * np.median(world_cup)
    assert (tweets == 0).sum() > 60
    assert tweets.max() > 3 * np.median(tweets)
    assert (flights > 0).all()
    assert flights.max() < 2 * np.median(flights)


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("0,5\n1,6\n", "header 'minute,count'"),
        ("", "header 'minute,count'"),
        ("minute,count\n0,5\n1,-6\n", "Line 3 .* cannot be negative"),
        ("minute,count\n0,five\n", "Line 2 .* 'five'"),
        ("minute,count\n0,nan\n", "Line 2"),
        ("minute,count\n0,5,7\n", "Line 2 .* 3 columns"),
        ("minute,count\n0,5\n2,6\n", "Line 3 .* leaves out 1 minutes"),
        ("minute,count\n1,5\n0,6\n", "Line 3 .* goes back in time: sort"),
        ("minute,count\n1,5\n1,6\n", "Line 3 .* repeats the minute"),
        ("minute,count\nnoon,5\n", "Line 2 .* has the minute 'noon'"),
        ("minute,count\n1.5,5\n", "Line 2 .* has the minute '1.5'"),
        ("minute,count\n2026-01-31T09:05:30,5\n", "without seconds"),
        (
            "minute,count\n2026-01-31T09:59,5\n2026-01-31T10:01,5\n",
            "Line 3 .* leaves out 1 minutes",
        ),
        ("minute,count\n0,5\n", f"1 rows, .* at least {FEWEST_ROWS}"),
    ],
)
def test_a_bad_trace_is_refused_with_the_line(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(AskedWrongly, match=says):
        read_trace(write(tmp_path / "trace.csv", text), FEWEST_ROWS)


def test_a_good_trace_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "minute,count\n0,5\n1,6.5\n\n2,0\n")
    assert list(read_trace(path, 3)) == [5.0, 6.5, 0.0]


def test_minutes_may_be_times(tmp_path: Path) -> None:
    lines = "2026-01-31T23:59Z,5\n2026-02-01 00:00+00:00,6\n2026-02-01T01:01+01:00,7\n"
    path = write(tmp_path / "t.csv", f"minute,count\n{lines}")
    assert list(read_trace(path, 3)) == [5.0, 6.0, 7.0]


def test_names_are_found_by_number_or_refused_with_a_hint() -> None:
    assert policies("7") == ["7:MST+UA+OL;ARMA"]
    assert policies("all") == list(MACHINE_POLICIES)
    assert len(applications("all")) == 8
    with pytest.raises(AskedWrongly, match="did you mean 'priced-capacity'"):
        policies("priced-capacit")
    with pytest.raises(AskedWrongly, match="did you mean 'grep'"):
        applications("grap")


def test_every_policy_runs_and_the_processes_change_nothing() -> None:
    shared = TraceForecasts(TRACE)
    apps = applications("rolling-flight-distances")
    alone = list(grid(shared, list(MACHINE_POLICIES), apps, 1, 0.9, processes=1))
    dealt = list(grid(shared, list(MACHINE_POLICIES), apps, 1, 0.9, processes=2))
    assert alone == dealt
    table = {row["policy"]: row for row in rows(alone)}
    assert table["ground-truth"]["qos"] == 100.0
    assert table["ground-truth"]["cost_vs_truth"] == 1.0
    assert table["static-peak"]["cost_vs_peak"] == pytest.approx(1.0, abs=0.02)
    for row in table.values():
        assert 0.0 <= row["qos"] <= 100.0
        assert row["cost_vs_truth"] > 0.5
