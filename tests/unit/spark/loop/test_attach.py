"""The whole way of an attachment, on a query and a cluster that are imitated: seconds of progress
in, executors out."""

import math
from types import SimpleNamespace

import pytest

from tests.helpers.fake_cluster import FakeCluster, at_once
from tests.helpers.fake_query import FakeQuery, progress
from tests.helpers.pipeline_worlds import measured
from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.decision import Decision
from tidegate.control.latency.options import LatencyOptions
from tidegate.control.measurement import Measurement
from tidegate.control.notice import NOT_GRANTED
from tidegate.control.overdue import FULL
from tidegate.control.record import Record
from tidegate.control.target import Target
from tidegate.errors import AskedWrongly
from tidegate.spark.loop.assembly import assembly_of
from tidegate.spark.loop.attach import Attachment
from tidegate.spark.loop.attached_queries import AttachedQueries
from tidegate.spark.loop.negotiate import ExecutorNegotiator, UntouchedExecutors
from tidegate.spark.loop.settings import LoopSettings
from tidegate.spark.loop.ticker import Ticker
from tidegate.spark.measure import attached_meter
from tidegate.spark.measure.attached_meter import AttachedMeter
from tidegate.spark.options import AttachOptions, filled

FIXED_S, WORK_S, GRANT_S = 0.4, 0.01, 4.0
START_S = 1000.0


def rate_at(second: float) -> float:
    return 200.0 if 30.0 <= second < 90.0 else 40.0


class World:
    """One query: the next batch takes what arrived during the last, on the executors there are."""

    def __init__(self, cores_per_executor: int = 1) -> None:
        self.query = FakeQuery("slow")
        self.cluster = FakeCluster(executors=1)
        self.per_executor = cores_per_executor
        self.grant_s = GRANT_S
        self.hangs_from_s = math.inf
        self.busy_s = 0.0
        self.latencies_s: list[tuple[float, float]] = []
        self._begun_s = self._before_s = 0.0
        self._batch = 0
        self._launched: list[float] = []
        self._requests = 0

    def run_until(self, second: float) -> None:
        self._serve_requests(second)
        while self._begun_s < self.hangs_from_s:
            span_s = self._begun_s - self._before_s
            rows = round(rate_at(self._before_s) * span_s)
            cores = len([e for e in self.cluster.up if e not in self.cluster.killed])
            work_s = rows * WORK_S
            duration_s = FIXED_S + work_s / (cores * self.per_executor)
            if self._begun_s + duration_s > second:
                return
            self.query.meter.coming.append(
                progress(self._batch, START_S + self._begun_s, duration_s, rows, max(span_s, 1e-3))
            )
            self.latencies_s.append((self._begun_s, duration_s + span_s / 2))
            self.busy_s += work_s
            self._batch += 1
            self._before_s, self._begun_s = self._begun_s, self._begun_s + duration_s

    def _serve_requests(self, second: float) -> None:
        for wanted in self.cluster.asked[self._requests :]:
            staying = [e for e in self.cluster.up if e not in self.cluster.killed]
            missing = wanted - len(staying) - len(self._launched)
            self._launched += [second + self.grant_s] * missing
        self._requests = len(self.cluster.asked)
        come = [at_s for at_s in self._launched if at_s <= second]
        self._launched = [at_s for at_s in self._launched if at_s > second]
        self.cluster.arrive(len(come))
        self.cluster.leave()


class Loop(Ticker):
    """The loop without its thread."""

    alive = True

    def __init__(self, world: World, most: int) -> None:
        per, cluster = world.per_executor, world.cluster
        negotiator = ExecutorNegotiator(
            cluster, per, per, boundary=cluster.boundary, clock=cluster.clock, background=at_once
        )
        bounds = Bounds(per, most * per)
        options = LatencyOptions(catch_up_s=10.0, scale_in_after_s=10.0)
        controller = new_controller(
            Assembly(target=Target(3.0), bounds=bounds, latency=options, cores_per_executor=per)
        )
        super().__init__(controller, negotiator, name="slow", tick_s=1.0, writer=None)
        self._meter = AttachedMeter(lambda: [world.query], negotiator, lambda: world.busy_s)

    def measure(self, now_s: float) -> Measurement:
        return self._meter.measure(now_s)

    def act(self, decision: Decision) -> None:
        assert decision.cores is not None
        self.negotiator.ask(decision.cores)


def drive(monkeypatch, world: World, seconds: int, most: int) -> list[Record]:
    monkeypatch.setattr(
        "tidegate.spark.measure.attached_meter.QueryMeter", lambda query: query.meter
    )
    monkeypatch.setattr(attached_meter.time, "time", lambda: START_S)
    loop = Loop(world, most)
    for second in range(1, seconds + 1):
        world.cluster.now_s = float(second)
        world.run_until(float(second))
        loop.tick(START_S + second)
    return list(loop.records)


def test_executors_follow_the_load_out_and_in(monkeypatch) -> None:
    world = World()
    records = drive(monkeypatch, world, 150, most=8)
    granted = [record.measurement.cores_granted for record in records]
    changes = [record.decision.cores for record in records if record.acted]
    assert max(granted[:30]) == 1
    assert 3 <= max(granted) <= 8
    assert granted[-1] == 1
    assert changes[0] >= 3, "out at once, as far as needed"
    assert len(changes) <= 6, changes
    steady = [latency_s for at_s, latency_s in world.latencies_s if 55.0 < at_s < 90.0]
    assert max(steady) < 3.0
    assert GRANT_S <= records[-1].measurement.grant_s <= GRANT_S + 2.0
    assert records[-1].beliefs["horizon_s"] > GRANT_S, (
        "what is forecast is when cores will be there"
    )
    assert records[20].beliefs["horizon_s"] < GRANT_S
    learned = records[-1].beliefs
    assert abs(learned["slow.w_s"] / WORK_S - 1.0) < 0.15
    assert abs(learned["slow.a0_s"] + learned["slow.a1_s"] - FIXED_S) < 0.15


def test_executors_of_two_cores_are_asked_for_whole(monkeypatch) -> None:
    world = World(cores_per_executor=2)
    records = drive(monkeypatch, world, 150, most=4)
    asked = [record.decision.cores for record in records if record.acted]
    assert asked and all(cores % 2 == 0 for cores in asked)
    assert len(asked) <= 6, asked
    assert max(asked) >= 4
    assert records[-1].measurement.cores_granted == 2
    assert max(world.cluster.asked) <= 4


def test_executors_that_do_not_come_are_said_until_they_do(monkeypatch) -> None:
    world = World()
    world.grant_s = 75.0
    records = drive(monkeypatch, world, 120, most=8)
    said = [[note for note in record.decision.notes if "do not come" in note] for record in records]
    first = next(place for place, notes in enumerate(said) if notes)
    asked = next(place for place, record in enumerate(records) if record.acted)
    assert 59 <= first - asked <= 62
    assert said[first] == [f"4 of 5 requested executors do not come: {FULL}"]
    assert len({note for notes in said for note in notes}) == 1, "no figure changes in it"
    notices = [one for record in records for one in record.notices if one.kind == NOT_GRANTED]
    assert [one.ended for one in notices] == [False, True]
    assert notices[0].what == f"4 of 5 executors requested 61 s ago have not started: {FULL}"
    assert max(record.measurement.cores_granted for record in records[:first]) == 1
    assert records[-1].measurement.cores_granted > 1
    assert said[-1] == []


def test_a_query_that_stalls_is_held_and_said(monkeypatch) -> None:
    world = World()
    world.hangs_from_s = 40.0
    records = drive(monkeypatch, world, 90, most=8)
    assert records[-1].measurement.stale is not None
    assert "nothing is scaled on old numbers" in records[-1].decision.reason
    assert not any(record.acted for record in records[-30:])


def test_a_dry_run_that_ends_gets_executors_to_scale() -> None:
    cluster = FakeCluster(executors=3, **{"spark.executor.cores": "1"})
    cluster.isStopped = lambda: False
    given = filled(AttachOptions, {"target": "2 s", "executors": (1, 4), "dry_run": True})
    settings = LoopSettings.of(AttachOptions, given, lambda given: assembly_of(cluster, given))
    untouched = UntouchedExecutors(cluster, 1)
    meter = SimpleNamespace(negotiator=untouched, measure=lambda now_s: measured(now_s, cores=3))
    attachment = Attachment(
        cluster,
        None,
        new_controller(settings.assembly),
        untouched,
        meter,
        AttachedQueries(list),
        settings,
        place=None,
        note=None,
    )
    attachment.update(target="3 s")
    assert attachment.tick(1.0).target_s == 3.0
    assert attachment.negotiator is untouched
    attachment.update(dry_run=False)
    record = attachment.tick(2.0)
    assert "settings changed: dry run on to off" in record.decision.notes
    assert isinstance(attachment.negotiator, ExecutorNegotiator)
    assert meter.negotiator is attachment.negotiator
    assert attachment.negotiator.asked == 3, "it begins with the executors that are up"
    with pytest.raises(AskedWrongly, match="there is no option 'policy'"):
        attachment.update(policy="drs")
    attachment.stop()
    with pytest.raises(AskedWrongly, match="has ended"):
        attachment.update(target="9 s")
