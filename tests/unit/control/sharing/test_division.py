"""Several pipelines, one lot of cores: the worst-off has as much as it can, by its own target."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.control.bounds import Bounds
from tidegate.control.claim import Claim, ClaimedLoad
from tidegate.control.constraints import Constraints
from tidegate.control.decision import Decision, hold
from tidegate.control.measurement import Measurement, OperatorMeasurement, SegmentMeasurement
from tidegate.control.sharing.division import Sharing, divided
from tidegate.control.sharing.within_share import WithinShare
from tidegate.models.microbatch.batch_cost import BatchCost
from tidegate.sim.microbatch.world import SimulatedSegment, Stage, World
from tidegate.sim.sharing.many_pipelines import crowd
from tidegate.sim.sharing.pipelines import Member, cores_in_use, simulate_together
from tidegate.workload.profile import steps


def claim(
    target_s: float = 2.0,
    rate: float = 5000.0,
    fixed_s: float = 0.3,
    per_task_s: float = 0.0,
    work_s: float = 1e-3,
    cores: int = 1,
) -> Claim:
    cost = BatchCost(fixed_s=fixed_s, per_task_s=per_task_s, work_s=work_s)
    load = ClaimedLoad(target_s=target_s, arrival_rate=rate, cost=cost)
    return Claim(cores=cores, load=load)


claims = st.builds(
    claim,
    target_s=st.sampled_from([0.5, 1.0, 2.0, 4.0]),
    rate=st.floats(0.0, 20_000.0),
    fixed_s=st.floats(0.05, 0.4),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(claims, min_size=1, max_size=3), st.integers(1, 9))
def test_no_division_gives_the_worst_off_more(asked: list[Claim], cores: int) -> None:
    named = {str(number): one for number, one in enumerate(asked)}
    found = divided(named, cores)
    assert min(found.values()) >= 1
    assert sum(found.values()) <= max(cores, len(asked))
    ours = min(one.kept(found[name]) for name, one in named.items())
    for other in itertools.product(range(1, cores + 1), repeat=len(asked)):
        if sum(other) <= cores:
            theirs = min(one.kept(k) for one, k in zip(asked, other, strict=True))
            assert theirs <= ours + 1e-12


def test_cores_that_cost_more_than_they_give_are_not_handed_out() -> None:
    dear = claim(2.0, rate=50_000.0, fixed_s=0.1, per_task_s=0.1)
    found = divided({"dear": dear, "idle": claim(rate=1.0)}, 100)
    best = max(range(1, 12), key=lambda cores: dear.kept(cores))  # more miss the target
    assert found == {"dear": best, "idle": 1}


def test_a_tighter_target_has_more_cores_for_the_same_rows() -> None:
    asked = {"tight": claim(1.0), "loose": claim(4.0)}
    found = divided(asked, 8)
    assert found["tight"] > found["loose"]
    shares = [asked[name].kept(found[name]) for name in asked]
    assert max(shares) / min(shares) < 1.35  # as even as whole cores can be


def test_whole_executors_are_divided() -> None:
    found = divided({"a": claim(), "b": claim(), "c": claim(rate=10.0)}, 12, unit=2)
    assert all(cores % 2 == 0 for cores in found.values())
    assert found["c"] == 2


def test_alone_there_is_nobody_to_share_with_and_spare_cores_are_anybodys() -> None:
    sharing = Sharing(8)
    sharing.tell("a", claim(cores=3))
    assert sharing.allowed("a") is None
    sharing.tell("b", claim(rate=100.0, cores=1))
    assert sharing.allowed("a") == 7
    assert sharing.allowed("b") == 5
    sharing.leave("b")
    assert sharing.allowed("a") is None


def test_who_holds_more_than_its_part_must_give_way() -> None:
    sharing = Sharing(8)
    sharing.tell("a", claim(rate=9000.0, cores=7))
    sharing.tell("b", claim(rate=9000.0, cores=1))
    assert sharing.allowed("b") == 4
    sharing.tell("b", claim(rate=9000.0, cores=4))
    assert sharing.allowed("a") == 4


def test_one_that_is_not_known_yet_may_have_an_even_part() -> None:
    sharing = Sharing(8)
    sharing.tell("a", claim(rate=9000.0, cores=6))
    sharing.tell("new", Claim(cores=1))
    assert sharing.allowed("a") == 7
    assert sharing.allowed("new") == 4
    sharing.ask("new", 4)
    assert sharing.allowed("a") == 4


def test_a_division_stays_until_another_is_clearly_better() -> None:
    sharing = Sharing(8)
    chance = np.random.default_rng(1)
    seen = set()
    for _ in range(50):
        for name in ("a", "b"):
            rate = 9000.0 * chance.uniform(0.97, 1.03)
            sharing.tell(name, claim(rate=rate, cores=4))
            seen.add(sharing.allowed(name) if name == "b" else 4)
    assert seen == {4}
    sharing.tell("a", claim(rate=9000.0, cores=4))
    sharing.tell("b", claim(rate=20_000.0, cores=4))
    assert sharing.allowed("b") > 4


def test_a_target_out_of_reach_does_not_take_it_all() -> None:
    asked = {"hopeless": claim(0.2, rate=3000.0), "fair": claim(2.0, rate=3000.0)}
    found = divided(asked, 6)
    assert found["fair"] >= 2


def tick(asked: int) -> Measurement:
    operators = tuple(
        OperatorMeasurement(
            name=name,
            arrival_rate=1.0,
            service_rate=1.0,
            tasks=asked,
            segment=name,
            busy_s=busy,
        )
        for name, busy in (("main", 3.0), ("late", 1.0))
    )
    segments = tuple(
        SegmentMeasurement(name=name, arrival_rate=1.0, backlog_rows=0.0, tasks=asked)
        for name in ("main", "late")
    )
    return Measurement(
        at_s=0.0,
        interval_s=1.0,
        arrival_rate=1.0,
        processed_rate=1.0,
        backlog_rows=0.0,
        cores_asked=asked,
        cores_granted=asked,
        saturated=False,
        operators=operators,
        segments=segments,
    )


def within_share(cores: int | None) -> Constraints:
    return Constraints(Bounds(1, 16), cores)


class Says:
    """A policy that always says the same."""

    name = "says"

    def __init__(self, decision: Decision) -> None:
        self._decision = decision

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        return self._decision


def test_a_share_that_shrinks_is_given_up_at_once() -> None:
    policy = WithinShare(Says(hold("all is well")))
    assert policy.decide(tick(8), within_share(None)) == hold("all is well")
    assert policy.decide(tick(8), within_share(8)) == hold("all is well")
    found = policy.decide(tick(8), within_share(5))
    assert found.cores == 5
    assert found.tasks == {"main": 3, "late": 2}
    assert "share of the application is 5 cores" in found.reason


def test_a_wish_beyond_the_share_is_cut() -> None:
    policy = WithinShare(Says(Decision(cores=9, tasks={"main": 9}, reason="more")))
    found = policy.decide(tick(4), within_share(6))
    assert found.cores == 6
    held = WithinShare(Says(Decision(cores=9, reason="more"))).decide(tick(4), within_share(4))
    assert held.cores is None
    assert held.holds


def test_what_it_has_already_it_may_come_to_use() -> None:
    """A policy that always wants more than its share still widens to it."""
    wants = WithinShare(Says(Decision(cores=9, tasks={"main": 9}, reason="more")))
    narrow = dataclasses.replace(
        tick(8),
        segments=tuple(dataclasses.replace(one, tasks=1) for one in tick(8).segments),
    )
    found = wants.decide(narrow, within_share(8))
    assert found.cores is None
    assert found.tasks == {"main": 5, "late": 3}
    assert wants.decide(tick(8), within_share(8)).holds


def test_bounds_give_way_to_the_share() -> None:
    assert Bounds(4, 16).within(None) == Bounds(4, 16)
    assert Bounds(4, 16).within(8) == Bounds(4, 8)
    assert Bounds(4, 16).within(2) == Bounds(2, 2)
    assert Bounds(4, 16).within(0) == Bounds(1, 1)


def members(
    targets_s: list[float], rates: list[tuple[float, float]], cores: int, seconds: float = 90.0
) -> dict[str, Member]:
    """Pipelines whose rows cost 2 ms of a core; the load changes after a third, and again."""
    found = {}
    for number, (target_s, (low, high)) in enumerate(zip(targets_s, rates, strict=True)):
        world = World(
            segments=(
                SimulatedSegment(
                    fixed_s=0.2, per_task_s=0.002, stages=(Stage(name="work", work_s=2e-3),)
                ),
            ),
            profile=steps([(0.0, low), (seconds / 3, high), (2 * seconds / 3, low)]),
            seconds=seconds,
            cores=1,
            tick_s=0.5,
            poisson=True,
            seed=number + 1,
        )
        found[f"{number}"] = Member(world=world, target_s=target_s, bounds=Bounds(1, cores))
    return found


def within(outcome, begin_s: float, end_s: float) -> tuple[float, float]:
    """Mean latency of the rows of a span, and the share of them that was kept."""
    seen = [
        record.measurement
        for record in outcome.records
        if begin_s <= record.measurement.at_s - 1_700_000_000.0 < end_s
    ]
    done = [
        (m.latency.mean_s, sum(b.rows for s in m.segments for b in s.batches))
        for m in seen
        if m.latency is not None
    ]
    rows = sum(rows for _, rows in done)
    offered = sum(source.offered for m in seen for source in m.sources)
    kept_rows = sum(source.kept for m in seen for source in m.sources)
    return sum(mean * rows for mean, rows in done) / rows, kept_rows / max(offered, 1)


def test_pipelines_in_an_overload_hold_their_own_targets_and_keep_alike() -> None:
    asked = members([1.0, 2.0, 4.0], [(300.0, 8000.0)] * 3, cores=24, seconds=75.0)
    found = simulate_together(asked, 24)
    shares = []
    for name, member in asked.items():
        mean_s, share = within(found[name], 35.0, 50.0)
        assert mean_s == pytest.approx(member.target_s, rel=0.1)
        shares.append(share)
        _, calm = within(found[name], 65.0, 75.0)
        assert calm == 1.0
    assert max(shares) / min(shares) < 1.5
    in_use = cores_in_use(found)
    assert np.mean(in_use > 24) < 0.05  # one that grows is a tick ahead of those that give way
    cores = [np.mean(found[name].cores[70:100]) for name in asked]
    assert cores[0] > cores[1] >= cores[2]


def test_cores_go_to_whoever_needs_them() -> None:
    """One surges while the other idles: it has nearly all, nothing is shed, and back again."""
    asked = members([2.0, 2.0], [(300.0, 3000.0), (300.0, 300.0)], cores=12)
    found = simulate_together(asked, 12)
    assert max(found["0"].cores) >= 8
    assert max(found["1"].cores) <= 4
    mean_s, share = within(found["0"], 40.0, 60.0)
    assert mean_s < 2.0
    assert share == 1.0


def test_a_crowd_of_pipelines_holds_its_targets() -> None:
    found = crowd(6)
    assert found.off < 0.1
    assert 0.2 < found.kept < 0.34
    assert found.least_kept > 0.6
