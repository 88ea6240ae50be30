"""The commit protocol on a real store: two drivers at once, and a crash after every step."""

import random
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from tests.faults.pipeline import graph, segments
from tests.faults.rows import Sequential, kept, source_rows
from tests.faults.work import ImitatedWork
from tests.unit.spark.state.test_other_filesystems import check_store, store_at
from tidegate.control.shedding.keep import Keep
from tidegate.errors import AskedWrongly
from tidegate.recording import RecordParts
from tidegate.spark.batch.channel import Log
from tidegate.spark.batch.checkpoint import Checkpoint
from tidegate.spark.batch.descriptions import Description, Descriptions
from tidegate.spark.batch.next_allocation import NextAllocation
from tidegate.spark.batch.plan import BatchPlan
from tidegate.spark.batch.step import Step, Steps
from tidegate.spark.batch.transaction import Transactions
from tidegate.spark.loop.recorder import recorder
from tidegate.spark.owner.epochs import Epochs, Fenced
from tidegate.spark.owner.lease import Lease
from tidegate.spark.owner.owner import take
from tidegate.spark.owner.process import Process
from tidegate.spark.shedding.ledger import Ledger, SourceTotals
from tidegate.spark.shedding.sources import ShedSources
from tidegate.spark.state.files import Durable
from tidegate.spark.state.layout import file_schema
from tidegate.spark.state.manifest import Manifests
from tidegate.spark.state.node_cache import open_layers
from tidegate.spark.state.read import read_version
from tidegate.spark.state.version import Version

RANGES = ((0, 7), (7, 15), (15, 20))


@pytest.fixture
def root(bucket) -> Durable:
    return Durable(f"s3a://{bucket}/ck")


def test_state_and_channels_work_on_s3(root, tmp_path):
    check_store(store_at(root.url, tmp_path))
    assert isinstance(recorder(root), RecordParts)
    log = Log(root.below("channels/c"))
    log.make()
    log.data.write("0000000000-a", b"rows")
    log.commit(0, -1, [("0000000000-a", 1)])
    log.commit(0, -1, [("0000000000-other", 1)])
    assert log.files(0, 1) == ["0000000000-a"], "a batch is handed over once"


def test_of_drivers_that_start_at_once_one_owns_the_checkpoint(root):
    claims = Epochs(root.below("owner"))
    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(lambda n: claims.make(None, Process("here", n), 0.0), range(6)))
    (mine,) = [epoch for epoch in made if epoch is not None]
    assert claims.newest() == mine
    claims.check(mine)
    next_one = claims.make(mine, Process("here", 7), 1.0)
    with pytest.raises(Fenced, match="has taken over the checkpoint"):
        claims.check(mine)
    claims.check(next_one)


def test_a_second_driver_is_told_who_has_the_checkpoint(root):
    claims = Epochs(root.below("owner"))
    owner = take(claims, "ads")
    try:
        with pytest.raises(AskedWrongly, match=r"the checkpoint s3a://.* is in use by another run"):
            take(claims, "ads")
    finally:
        owner.release()
    take(claims, "ads").release()


def test_two_drivers_that_commit_a_batch_have_the_same_manifest(root):
    manifests = Manifests(root.below("manifests"), root.below("state"))
    versions = [{"op": Version.empty(shards)} for shards in (4, 8)]
    with ThreadPoolExecutor(2) as pool:
        committed = list(pool.map(lambda given: manifests.commit(3, given), versions))
    assert committed[0] == committed[1] == manifests.load(3)


def test_a_driver_that_wakes_up_does_not_change_the_description(root):
    said = Descriptions(root)
    assert said.follow(None, {"pipeline": "first"})
    first = said.newest()
    assert said.follow(first, {"pipeline": "second"})
    assert not said.follow(first, {"pipeline": "late"})
    assert not said.follow(None, {"pipeline": "late"})
    assert said.newest() == Description(1, {"pipeline": "second"})


class Crash(Exception):
    """The driver ends here."""


class Life:
    """One checkpoint, and the drivers on it one after the other."""

    def __init__(self, root: Durable, caches) -> None:
        self.place, self.caches = Checkpoint(root), caches
        self.segment = segments(True)["main"]
        self.sunk: dict[int, list[frozenset]] = {}
        self.keeps: dict[int, float] = {}
        self.drivers = 0

    def driver(self) -> Transactions:
        """A new driver, on another machine: its caches are empty."""
        self.drivers += 1
        claims = Epochs(self.place.root.below("owner"))
        epoch = claims.make(claims.newest(), Process("here", self.drivers), float(self.drivers))
        assert epoch is not None
        self.place.open(graph(True))
        ledger = Ledger(self.place.segment("main").below("counts"))
        counts = SourceTotals(self.segment, ShedSources(self.segment, accumulator=None), ledger)
        allocation = NextAllocation(self.segment.nodes, 2)
        run = Transactions(
            self.segment,
            self.place,
            allocation,
            counts,
            Lease(claims, epoch),
            lambda name, job: job(),
        )
        open_layers.clear()
        run.prepare()
        return run

    def batch(self, run: Transactions, batch_id: int, after_step=None) -> None:
        """Run a batch, after Spark has logged its offsets, and let Spark commit it."""
        start, end = RANGES[batch_id]
        logs = self.place.segment("main").below("spark")
        logs.below("offsets").create(str(batch_id), b"")
        chance = random.Random(100 * self.drivers + batch_id)

        def read(plan: BatchPlan) -> tuple[pa.Table, int, int]:
            self.keeps.setdefault(batch_id, plan.keep.fraction)
            assert self.keeps[batch_id] == plan.keep.fraction, "a replay sheds the same rows"
            mine = kept(start, end, batch_id, plan.keep.fraction)
            return source_rows(start, end).filter(pa.array(mine)), end - start, int(mine.sum())

        def sink(rows: pa.Table) -> None:
            given = frozenset(tuple(row.values()) for row in rows.to_pylist())
            self.sunk.setdefault(batch_id, []).append(given)

        work = ImitatedWork(
            self.segment,
            self.place,
            self.caches / str(self.drivers),
            chance,
            batch_id,
            read,
            sink,
            lambda attempt: None,
            {},
        )
        keep = chance.choice([1.0, 0.5, 0.8])
        run.run(
            batch_id,
            work,
            Steps(batch_id, after_step),
            lambda operators: BatchPlan(batch_id, batch_id, operators, Keep(keep, {})),
        )
        logs.below("commits").create(str(batch_id), b"")

    def state(self, batch_id: int) -> dict[int, tuple[int, int]]:
        (node,) = self.segment.keyed
        folder = self.place.segment("main").below("manifests")
        version = Manifests(folder, self.place.states).load(batch_id).versions[node.name]
        schema = file_schema(node.key_schema, node.bound)
        table = read_version(self.place.state(node.name), version, ["k"], None, 0, schema)
        return {row["k"]: (row["n"], row["total"]) for row in table.to_pylist()}


@pytest.mark.parametrize("step", list(Step), ids=lambda step: step.name.lower())
def test_a_crash_after_any_step_changes_nothing(root, tmp_path, step):
    life = Life(root, tmp_path)

    def crash(reached: Step, batch_id: int) -> None:
        if reached is step:
            raise Crash

    first = life.driver()
    life.batch(first, 0)
    with pytest.raises(Crash):
        life.batch(first, 1, crash)
    second = life.driver()
    life.batch(second, 1)
    with pytest.raises(Fenced):
        life.batch(first, 2)
    life.batch(second, 2)
    truth = Sequential()
    for batch_id, (start, end) in enumerate(RANGES):
        expected = truth.batch(batch_id, start, end, life.keeps[batch_id])
        assert set(life.sunk[batch_id]) == {frozenset(expected)}
    assert life.state(2) == truth.totals
    handed = Log(root.below("channels/between"))
    assert [one.batch_id for one in handed.waiting(0)] == [0, 1, 2]
