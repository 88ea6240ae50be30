"""The control loop of a pipeline, on a run and a cluster that are imitated."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.helpers.fake_cluster import FakeCluster
from tidegate.control.control_failure import ControlFailure
from tidegate.control.shedding.keep import KEEP_ALL, Keep
from tidegate.errors import AskedWrongly
from tidegate.pipelines.graph import Graph
from tidegate.spark.loop.assembly import assembly_of
from tidegate.spark.loop.loop import ControlLoop
from tidegate.spark.loop.settings import LoopSettings
from tidegate.spark.loop.ticker import FAILURES_TO_KEEP_ALL
from tidegate.spark.options import StartOptions, filled
from tidegate.spark.run import Run
from tidegate.spark.sharing.core_pool import Part


class FakeRun(SimpleNamespace):
    """A run without segments: nothing to measure, and nothing that a decision could change."""

    def __init__(self) -> None:
        super().__init__(
            name="fake", segments={}, queries={}, isActive=True, ended=False, warmed=None
        )
        self.kept = Keep(0.25)

    def allocation(self) -> dict:
        return {}

    def parts(self) -> dict:
        return {}

    def previews(self) -> frozenset:
        return frozenset()

    def counts(self) -> dict:
        return {}

    def keep(self) -> Keep:
        return self.kept

    def keep_from_now(self, keep: Keep) -> None:
        self.kept = keep


def loop_on(cluster: FakeCluster, place: Path, **options) -> ControlLoop:
    given = filled(StartOptions, {"target": "2 seconds", "cores": (1, 40), **options})
    settings = LoopSettings.of(StartOptions, given, lambda given: assembly_of(cluster, given))
    return ControlLoop(FakeRun(), cluster, settings, str(place))


def test_shedding_ends_when_control_has_failed_for_several_ticks(tmp_path: Path) -> None:
    cluster = FakeCluster(executors=1, **{"spark.executor.cores": "1"})
    loop = loop_on(cluster, tmp_path)
    try:
        for _ in range(FAILURES_TO_KEEP_ALL):
            assert loop._run.kept == Keep(0.25)
            loop._failed(OSError("no answer"), 100.0)
        assert loop._run.kept == KEEP_ALL
    finally:
        loop.leave()


@pytest.mark.parametrize("dry_run", [True, False])
def test_neither_a_start_nor_a_dry_run_trims_what_is_up(dry_run: bool, tmp_path: Path) -> None:
    cluster = FakeCluster(executors=10, **{"spark.executor.cores": "2"})
    loop = loop_on(cluster, tmp_path, dry_run=dry_run)
    try:
        loop.negotiator.let_go()
        assert (loop.negotiator.asked, loop.negotiator.granted()) == (20, 20)
        assert (cluster.asked, cluster.killed) == ([], [])
    finally:
        loop.leave()


def test_a_dry_run_touches_nothing_even_outside_its_bounds(tmp_path: Path) -> None:
    cluster = FakeCluster(executors=10, **{"spark.executor.cores": "1"})
    loop = loop_on(cluster, tmp_path, dry_run=True, cores=(1, 4))
    loop.negotiator.let_go()
    assert (cluster.asked, cluster.killed, loop.negotiator.granted()) == ([], [], 10)


def test_a_dry_run_that_ends_gets_a_part_of_the_pool(tmp_path: Path) -> None:
    cluster = FakeCluster(executors=4, **{"spark.executor.cores": "1"})
    loop = loop_on(cluster, tmp_path, dry_run=True)
    before = loop.negotiator
    try:
        loop.change_settings({"dry_run": False, "target": "5 s"})
        assert loop.negotiator is before, "only the next tick takes over"
        record = loop.tick(1000.0)
        assert isinstance(loop.negotiator, Part)
        assert loop.meter.negotiator is loop.negotiator
        assert loop.assembly.target.latency_s == record.target_s == 5.0
        assert "settings changed: target 2 s to 5 s, dry run on to off" in record.decision.notes
        assert (loop.negotiator.asked, cluster.asked) == (4, [])
        loop.change_settings({"dry_run": True})
        part = loop.negotiator
        loop.tick(1001.0)
        assert loop.negotiator is part, "it keeps the cores that it has"
        with pytest.raises(AskedWrongly, match="shed cannot change"):
            loop.change_settings({"shed": True, "target": "9 s"})
        assert loop.tick(1002.0).target_s == 5.0
    finally:
        loop.leave()


def test_a_dry_run_takes_no_share_from_other_pipelines(tmp_path: Path) -> None:
    cluster = FakeCluster(executors=4, **{"spark.executor.cores": "1"})
    dry = loop_on(cluster, tmp_path / "dry", dry_run=True)
    real = loop_on(cluster, tmp_path / "real")
    try:
        assert (real.negotiator.asked, cluster.asked) == (4, [])
    finally:
        dry.leave()
        real.leave()


def test_a_run_says_that_control_fails_and_does_not_fail_itself(tmp_path: Path) -> None:
    run = Run(Graph("shop"), {})
    assert run.control_failure is None
    cluster = FakeCluster(executors=1, **{"spark.executor.cores": "1"})
    run.loop = loop = loop_on(cluster, tmp_path, dry_run=True)
    assert run.control_failure is None
    loop._failed(OSError("no answer"), 100.0)
    assert run.control_failure == ControlFailure(100.0, 1, "OSError: no answer")
    run._raise_failure()
    loop.control_failure = None
    assert run.control_failure is None
