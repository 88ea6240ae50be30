"""One simulated life of a checkpoint: drivers start, fail, sleep and wake; then it is judged."""

import random
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import fs

from tests.faults.disk import INJECTED, Disk, Objects
from tests.faults.pipeline import SHARDS, graph, segments
from tests.faults.rows import Sequential, hashes, kept, source_rows
from tests.faults.turns import Actor, Killed, Turns
from tests.faults.work import ImitatedWork
from tidegate.control.shedding.keep import Keep
from tidegate.errors import TidegateError
from tidegate.spark.batch import channel
from tidegate.spark.batch.channel import Log
from tidegate.spark.batch.checkpoint import Checkpoint
from tidegate.spark.batch.committed import lay_baseline
from tidegate.spark.batch.layouts import earlier_layouts, schema_of
from tidegate.spark.batch.next_allocation import NextAllocation
from tidegate.spark.batch.plan import BatchPlan
from tidegate.spark.batch.reshard import reshard_owned
from tidegate.spark.batch.step import Steps
from tidegate.spark.batch.transaction import Transactions
from tidegate.spark.owner import epochs
from tidegate.spark.owner.epochs import Epochs, Fenced
from tidegate.spark.owner.lease import Lease
from tidegate.spark.owner.process import Process
from tidegate.spark.savepoint.contents import contents
from tidegate.spark.savepoint.copy import copy_all
from tidegate.spark.savepoint.index import Savepoint
from tidegate.spark.savepoint.restore import restore
from tidegate.spark.shedding.ledger import Ledger, SourceTotals
from tidegate.spark.shedding.sources import ShedSources
from tidegate.spark.state import files, manifest
from tidegate.spark.state.files import Durable
from tidegate.spark.state.kept_versions import KeptVersions
from tidegate.spark.state.manifest import Manifests
from tidegate.spark.state.node_cache import open_layers
from tidegate.spark.state.read import read_version

URL = "sim://world/ck"
KINDS = frozenset({"wait", "before", "after", "stale", "full", "kill", "pause", "lose"})
_MOST_TURNS = 20_000
_GIVE_WAY = 0.15
"""The chance that another process goes on before an operation."""


class Defect(AssertionError):
    """The protocol did something that a sequential run would not."""


@dataclass(frozen=True)
class Course:
    """All that decides a simulated life."""

    seed: int
    manner: str = "s3"
    batches: int = 4
    cut: bool = True
    """Whether the pipeline has a second segment behind a channel."""
    drivers: int = 4
    faults: int = 3
    kinds: frozenset[str] = KINDS
    sweep_every: int = 64
    """Every how many batches orphans are removed; in long courses more often than in real life."""
    epochs_kept: int = 64
    lost: str = "manifests"
    """What somebody removes in a course that loses files."""
    evolves: int = 0
    """The first driver whose pipeline has another column in its state; 0: none has."""
    saved: bool = False
    """Whether drivers may go on from a savepoint, on another checkpoint, when one has ended."""
    versions: int | str = 3
    """How many versions of the state are kept, or for how long; a batch takes a microsecond."""
    resharded: bool = False
    """Whether there may be another number of shards when a driver has ended."""

    @classmethod
    def of(cls, seed: int) -> "Course":
        """The course of a seed, by chance."""
        chance = random.Random(seed)
        few = {kind for kind in sorted(KINDS - {"wait", "lose"}) if chance.random() < 0.5}
        if chance.random() < 0.05:
            few = {"kill", "lose"}
        long = chance.random() < 0.05
        found = cls(
            seed,
            manner=chance.choice(["s3", "hdfs"]),
            batches=8 if long else chance.choice([1, 2, 2, 3, 4]),
            cut=chance.random() < 0.3,
            drivers=chance.randint(2, 6 if long else 4),
            faults=chance.randint(1, 8 if long else 4),
            kinds=frozenset(few | {"wait"}),
            sweep_every=chance.choice([1, 2, 3, 64]),
            epochs_kept=chance.choice([2, 3, 64]),
            lost=chance.choice(["manifests", "segments/main", "pipeline."]),
        )
        # Behind a cut the rows would have another column as well.
        evolves = 0 if found.cut else chance.choice([0, 2, 3])
        saved = chance.random() < 0.3
        # The other manner is that of filesystems that cannot replace a file in one step.
        resharded = found.manner == "s3" and chance.random() < 0.3
        versions = chance.choice([3, 3, 4, 100, "0.000005 s", "0.0001 s"])
        return replace(found, evolves=evolves, saved=saved, resharded=resharded, versions=versions)


class SparkGone(Exception):
    """Spark's own log refused a second writer: the query ends."""


@dataclass
class World:
    """A checkpoint, the drivers on it, and everything that their sinks were given."""

    course: Course
    trace: list[str] = field(default_factory=list)
    sunk: dict[tuple[str, int], list[tuple[int, frozenset]]] = field(default_factory=dict)
    """For each segment and batch, each call of its sink: the driver, and the rows."""
    plans: dict[int, float] = field(default_factory=dict)
    """For each batch of the first segment, the fraction kept by the plan that reached its sink."""
    stages: dict[str, bytes] = field(default_factory=dict)
    ranges: dict[tuple[str, int], bytes] = field(default_factory=dict)
    """What was in the log of offsets when the checkpoint was saved."""
    lost: bool = False
    refused: bool = False
    _left: int = 0
    _driver: int = 0

    def __post_init__(self) -> None:
        self.chance = random.Random(self.course.seed)
        self.turns = Turns(self.chance)
        self.disk = Disk(self.turns, self.course.manner, self._fault, self.trace)
        self.total = self.course.batches * 6
        self.shards = SHARDS
        self.available = min(self.total, self.chance.randint(4, 10))
        self._left = self.course.faults
        self._full_until = 0
        shared = Path("/dev/shm")
        self.caches = Path(tempfile.mkdtemp(dir=shared if shared.is_dir() else None))

    def _fault(self, what: str, path: str) -> str | None:
        """What happens to the next operation."""
        if what == "write" and self._full_until > self.turns.now:
            return "full"
        draw = self.chance.random()
        if draw < _GIVE_WAY:
            return "wait"
        if draw > 0.97 and self._left > 0 and self.turns.current is not None:
            kinds = self.course.kinds & {"before", "after", "stale", "full", "kill", "pause"}
            if not kinds:
                return None
            self._left -= 1
            kind = self.chance.choice(sorted(kinds))
            actor = self.turns.current
            if kind == "kill":
                self._note(f"kill driver {actor.driver}")
                self.turns.kill(actor.driver)
                raise Killed
            if kind == "pause":
                self._note(f"pause driver {actor.driver}")
                until = self.turns.now + self.chance.choice([20, 100, 400])
                for one in self.turns.actors:
                    if one.driver == actor.driver:
                        one.paused_until = until
                return "wait"
            if kind == "full":
                self._full_until = self.turns.now + 30
                return "full" if what == "write" else None
            if kind == "stale" and what != "list":
                return None
            return kind
        return None

    def _note(self, text: str) -> None:
        self.trace.append(f"{self.turns.now:5d} {'-':12s} {text}")

    def run(self) -> None:
        """Live through it, and judge it; raises `Defect`."""
        plain, files._filesystem = files._filesystem, self._filesystem_of(files._filesystem)
        objects, files.objects_of = files.objects_of, self._objects_of
        at_once, files._AT_ONCE = files._AT_ONCE, 1
        kept, epochs.KEPT = epochs.KEPT, self.course.epochs_kept
        sweeps = manifest._SWEEP_EVERY
        manifest._SWEEP_EVERY = channel._SWEEP_EVERY = self.course.sweep_every
        try:
            self._live()
            self._judge()
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
            raise Defect(told + "\n" + "\n".join(self.trace[-400:])) from error
        finally:
            files._filesystem, files._AT_ONCE, epochs.KEPT = plain, at_once, kept
            files.objects_of = objects
            manifest._SWEEP_EVERY = channel._SWEEP_EVERY = sweeps
            shutil.rmtree(self.caches, ignore_errors=True)
            open_layers.clear()

    def _filesystem_of(self, plain: Callable) -> Callable:
        behind = fs.PyFileSystem(self.disk)

        def by_url(url: str):
            scheme, mark, path = url.partition("://world")
            return (behind, path) if (scheme, mark) == ("sim", "://world") else plain(url)

        return by_url

    def _objects_of(self, url: str) -> Objects | None:
        return Objects(self.disk) if self.course.manner == "s3" else None

    def _live(self) -> None:
        """Drivers one after the other, or at once while one of them is paused."""
        while True:
            if self.turns.now > _MOST_TURNS:
                raise Defect("the pipeline does not come to its end")
            mine = [a for a in self.turns.actors if a.driver == self._driver]
            up = [a for a in mine if not a.done and not a.killed]
            asleep = bool(up) and all(a.paused_until > self.turns.now + 5 for a in up)
            ended = bool(mine) and not up
            if ended and (self._finished() or self.refused):
                while self.turns.step():  # zombies live on to their end
                    self._check_errors()
                return
            if not mine or ended or asleep:
                if self._driver >= self.course.drivers:
                    self._left = 0  # from here on nothing fails any more
                    self._full_until = 0
                if not asleep or self.chance.random() < 0.5:
                    if ended and self.course.saved and not self.lost:
                        if self.chance.random() < 0.5:
                            self._move()
                    elif ended and self.course.resharded and not self.lost:
                        if self.chance.random() < 0.5:
                            self._reshard()
                    elif ended and "lose" in self.course.kinds and self.chance.random() < 0.3:
                        self._lose()
                    self._start()
            if self.available < self.total and self.chance.random() < 0.05:
                self.available = min(self.total, self.available + self.chance.randint(3, 12))
            if not self.turns.step():
                self.available = self.total
            self._check_errors()

    def _finished(self) -> bool:
        """Whether a driver has ended of itself because all rows are read."""
        mine = [a for a in self.turns.actors if a.driver == self._driver and a.name != "cleaner"]
        return self.available >= self.total and all(
            a.done and not a.killed and a.error is None for a in mine
        )

    def _check_errors(self) -> None:
        for actor in self.turns.actors:
            if not actor.done or actor.error is None:
                continue
            if actor.judged:
                continue
            actor.judged, error = True, actor.error
            told = f"{actor.name}: {type(error).__name__}: {error}"
            if isinstance(error, Killed | Fenced | SparkGone) or _injected(error):
                self._note(f"{told} ends driver {actor.driver}")
                self.turns.kill(actor.driver)
            elif actor.driver < self._driver and "does not fit this pipeline" in told:
                self._note(f"{told} ends driver {actor.driver}: the state has evolved since")
                self.turns.kill(actor.driver)
            elif self.lost and isinstance(error, TidegateError):
                self.refused = True
                self.turns.kill(actor.driver)
            else:
                raise Defect(f"a driver ended with {told}") from error

    def _lose(self) -> None:
        """Somebody removes a part of the checkpoint while no driver runs."""
        gone = [name for name in self.disk.files if f"/{self.course.lost}" in name]
        committed = [name for name in self.disk.files if "/spark/commits/" in name]
        if gone and committed:
            self.lost = True
            self._note(f"{self.course.lost} is lost")
            for name in gone:
                del self.disk.files[name]

    def _end_all(self) -> None:
        """Kill the drivers that sleep and the tasks that nobody waits for."""
        for actor in self.turns.actors:
            actor.killed = True
        while self.turns.step():
            pass

    def _move(self) -> None:
        """Somebody makes a savepoint, and the next driver begins a checkpoint with it."""
        self._end_all()
        self._full_until = 0
        there, saved = Durable(URL), Durable(f"{URL}-saved")
        description = Checkpoint(there).description()
        if description is None:
            return
        self._note("the checkpoint is saved, and begins anew")
        for name, content in self.disk.files.items():
            if "/spark/offsets/" in name:
                _, _, _, segment, _, _, batch_id = name.split("/")
                self.ranges[segment, int(batch_id)] = content
        found = contents(there, description)
        copied = copy_all(there, saved, [*found.small, *found.state])
        index = Savepoint(saved.url, 0.0, found.batches, description, tuple(copied))
        for name in [name for name in self.disk.files if name.startswith("/ck/")]:
            del self.disk.files[name]
        restore(index, there)
        for name in [name for name in self.disk.files if name.startswith("/ck-saved/")]:
            del self.disk.files[name]

    def _reshard(self) -> None:
        """Somebody reshards the checkpoint, and may be killed in the middle of that."""
        self._end_all()
        root = Durable(URL)
        if Checkpoint(root).description() is None:
            return
        count = self.chance.choice([2, 3, 8])
        wanted = dict.fromkeys(self._described()["operators"], count)
        self._note(f"{count} shards")

        def of_keys(keys: pa.Table) -> np.ndarray:
            return hashes(keys.column("k").to_numpy())

        def body() -> None:
            reshard_owned(root, wanted, of_keys, lambda: None)

        self.turns.add(Actor("reshard", -1000, body))
        while self.turns.step():
            self._check_errors()
        self.shards = self._described()["operators"]["sums"]["shards"]

    def _described(self) -> dict:
        return Checkpoint(Durable(URL)).description() or {}

    def _start(self) -> None:
        self._driver += 1
        number = self._driver
        self._note(f"driver {number} starts")
        Driver(self, number).start()

    # What Spark keeps: the logs of offsets and commits, which refuse a second writer.

    def begun(self, segment: str) -> int:
        return self._newest(segment, "offsets")

    def committed(self, segment: str) -> int:
        return self._newest(segment, "commits")

    def _newest(self, segment: str, log: str) -> int:
        base = f"/ck/segments/{segment}/spark/{log}/"
        return max((int(n[len(base) :]) for n in self.disk.files if n.startswith(base)), default=-1)

    def log(self, segment: str, log: str, batch_id: int, content: bytes) -> None:
        self.turns.give_way()
        path = f"/ck/segments/{segment}/spark/{log}/{batch_id}"
        if path in self.disk.files:
            raise SparkGone(f"{log} of batch {batch_id} exists")
        self.disk._publish(path, content)
        self.trace.append(f"{self.turns.now:5d} {self.turns.current.name:12s} spark  {path}")
        self.turns.give_way()

    def range_of(self, segment: str, batch_id: int) -> tuple[int, int]:
        logged = self.disk.files.get(f"/ck/segments/{segment}/spark/offsets/{batch_id}")
        if logged is None:  # of long before a savepoint, which has the newest ones
            logged = self.ranges[segment, batch_id]
        start, end = logged.split()
        return int(start), int(end)

    # The judgement.

    def _judge(self) -> None:
        truth = Sequential()
        for (segment, batch_id), calls in self.sunk.items():
            if len({rows for _, rows in calls}) > 1:
                raise Defect(f"the sink of '{segment}' got different rows for batch {batch_id}")
        last = self.committed("main")
        for batch_id in range(last + 1):
            if ("main", batch_id) not in self.sunk:
                raise Defect(f"batch {batch_id} is committed, but no sink has seen it")
            start, end = self.range_of("main", batch_id)
            expected = truth.batch(batch_id, start, end, self.plans[batch_id])
            if self.sunk["main", batch_id][0][1] != expected:
                raise Defect(f"the output of batch {batch_id} is not that of a sequential run")
        if self.refused:
            return
        if self.lost and len(self.sunk) == 0:
            return
        self._left, self.course_over = 0, True
        for segment in segments(self.course.cut):
            self._judge_older(segment)
        state = self._state("sums", "main")
        if {row["k"]: (row["n"], row["total"]) for row in state} != truth.totals:
            raise Defect(f"the state is {state}, a sequential run has {truth.totals}")
        if self.course.cut:
            seen = {row["k"]: row["count"] for row in self._state("seen", "between")}
            if seen != dict(truth.seen):
                raise Defect(f"the second segment counts {seen}, expected {dict(truth.seen)}")
        totals = Ledger(Durable(URL).below("segments/main/counts")).after(last).get("source")
        if last >= 0 and (
            totals is None
            or (totals.offered, totals.kept)
            != (
                truth.offered,
                truth.kept,
            )
        ):
            raise Defect(f"the ledger has {totals}, expected {truth.offered} and {truth.kept}")

    def _judge_older(self, segment: str) -> None:
        """All versions that are to be kept since the checkpoint began can be read."""
        place = Checkpoint(Durable(URL))
        manifests = Manifests(place.segment(segment).below("manifests"), place.states)
        committed = manifests.committed()
        kept = KeptVersions.asked(self.course.versions).of(
            {batch: manifests.at_us(batch) for batch in committed}
        )
        if isinstance(self.course.versions, int) and not self.course.saved:
            wanted = range(max(0, self.committed(segment) - self.course.versions + 1))
            newest = set(range(self.committed(segment) + 1)) - set(wanted)
            if not newest <= kept:
                raise Defect(f"the versions {newest - kept} of '{segment}' are gone")
        for batch in kept:
            for operator, version in manifests.load(batch).versions.items():
                for file in version.files:
                    if f"/ck/state/{operator}/{file.name}" not in self.disk.files:
                        raise Defect(f"version {batch} of '{segment}' has lost {file.name}")

    def _state(self, operator: str, segment: str) -> list[dict]:
        place = Checkpoint(Durable(URL))
        described = self._described()["operators"][operator]
        kept_as = described.get("kept_as", operator)
        last = self.committed(segment)
        if last < 0:
            return []
        folder = Durable(URL).below(f"segments/{segment}/manifests")
        version = Manifests(folder, place.states).load(last).versions[kept_as]
        schema, earlier = schema_of(described["schema"]), earlier_layouts(described)
        table = read_version(place.states.below(kept_as), version, ["k"], None, 0, schema, earlier)
        return table.to_pylist()


def _injected(error: BaseException | None) -> bool:
    while error is not None:
        if any(INJECTED in told for told in (str(error), *getattr(error, "__notes__", ()))):
            return True
        error = error.__cause__ or error.__context__
    return False


class Driver:
    """One driver: claims the checkpoint, then runs both segments and a cleaner side by side."""

    def __init__(self, world: World, number: int) -> None:
        self.world, self.number = world, number
        self.chance = random.Random(f"{world.course.seed}-{number}")
        self.jobs: dict[str, Callable[[], None]] = {}
        self.ended = 0
        self.place = Checkpoint(Durable(URL))
        self.evolved = 0 < world.course.evolves <= number

    def start(self) -> None:
        self._actor("start", self._begin)

    def _actor(self, name: str, body: Callable[[], None]) -> Actor:
        return self.world.turns.add(Actor(f"{name}-{self.number}", self.number, body))

    def _begin(self) -> None:
        claims = Epochs(self.place.root.below("owner"))
        epoch = None
        while epoch is None:  # the worst case: nobody waits for a sign of life of the last owner
            process = Process("here", self.number)
            epoch = claims.make(claims.newest(), process, float(self.number))
        lease = Lease(claims, epoch)
        made = graph(self.world.course.cut, self.evolved, self.world.shards)
        with lease.blamed():
            lay_baseline(self.place)
            self.place = self.place.open(made, check=lease.check)
        runs = []
        for name, segment in segments(
            self.world.course.cut, self.evolved, self.world.shards
        ).items():
            counts = SourceTotals(
                segment,
                ShedSources(segment, accumulator=None),
                Ledger(self.place.segment(name).below("counts")),
            )
            allocation = NextAllocation(segment.nodes, 2)
            runs.append(
                Transactions(
                    segment,
                    self.place,
                    allocation,
                    counts,
                    lease,
                    self._clean_later,
                    rule=KeptVersions.asked(self.world.course.versions),
                )
            )
        for run in runs:
            run.prepare()
        for run in runs:
            self._actor(run.segment.name, lambda run=run: self._batches(run))
        self._actor("cleaner", self._cleans)

    def _clean_later(self, name: str, job: Callable[[], None]) -> None:
        self.jobs[name] = job

    def _cleans(self) -> None:
        """Remove old files whenever there is a turn, and let no failure matter."""
        while self.jobs or self.ended < len(segments(self.world.course.cut)):
            self.world.turns.give_way()
            if self.jobs:
                job = self.jobs.pop(next(iter(self.jobs)))
                try:
                    job()
                except Exception as error:
                    if not _injected(error):
                        raise

    def _batches(self, run: Transactions) -> None:
        """Spark's loop of one query."""
        world, name = self.world, run.segment.name
        log = Log(self.place.channel("between"))
        idle = 0
        while True:
            world.turns.give_way()
            batch_id = world.begun(name)
            if batch_id == world.committed(name):
                start = world.range_of(name, batch_id)[1] if batch_id >= 0 else 0
                end = self._latest(name, log, start)
                if end == start:
                    if self._over(name):
                        idle += 1
                        if idle > 2:
                            self.ended += 1
                            return
                    continue
                idle = 0
                batch_id += 1
                world.log(name, "offsets", batch_id, f"{start} {end}".encode())
            self._batch(run, batch_id, log)
            world.log(name, "commits", batch_id, b"")
            if name == "between" and self.chance.random() < 0.5:
                end = world.range_of(name, batch_id)[1]
                try:
                    log.note_read(end)
                    log.forget(end)
                except OSError as error:
                    if not _injected(error):
                        raise

    def _latest(self, name: str, log: Log, start: int) -> int:
        if name == "main":
            return min(self.world.available, start + self.chance.randint(3, 12))
        return log.limited(start, 1000, 1000)

    def _over(self, name: str) -> bool:
        """Whether nothing can come any more."""
        world = self.world
        return world.begun("main") == world.committed("main") and (
            world.begun("main") >= 0
            and world.range_of("main", world.begun("main"))[1] >= world.total
        )

    def _batch(self, run: Transactions, batch_id: int, log: Log) -> None:
        world, name = self.world, run.segment.name
        start, end = world.range_of(name, batch_id)
        used: list[BatchPlan] = []

        def read(plan: BatchPlan) -> tuple[pa.Table, int, int]:
            used.append(plan)
            if name == "main":
                mine = kept(start, end, batch_id, plan.keep.fraction)
                return source_rows(start, end).filter(pa.array(mine)), end - start, int(mine.sum())
            tables = []
            for file in log.files(start, end):
                with log.data.open(file) as stream:
                    tables.append(pa.ipc.open_file(stream).read_all())
            return pa.concat_tables(tables), 0, 0

        def sink(rows: pa.Table) -> None:
            world.turns.give_way()
            if name == "main":
                world.plans.setdefault(batch_id, used[-1].keep.fraction)
            given = frozenset(tuple(row.values())[:3] for row in rows.to_pylist())
            world.sunk.setdefault((name, batch_id), []).append((self.number, given))
            world._note(f"sink of {name} gets batch {batch_id} from driver {self.number}")
            world.turns.give_way()

        def too_late(attempt: Callable[[], object]) -> None:
            zombie = Actor(f"zombie-{self.number}", -self.number, lambda: _quietly(attempt))
            world.turns.add(zombie)

        work = ImitatedWork(
            run.segment,
            self.place,
            world.caches,
            self.chance,
            batch_id,
            read,
            sink,
            too_late,
            world.stages,
        )

        def new_plan(operators) -> BatchPlan:
            keep = self.chance.choice([1.0, 0.3, 0.5, 0.8]) if name == "main" else 1.0
            return BatchPlan(batch_id, batch_id, operators, Keep(keep, {}))

        run.run(batch_id, work, Steps(batch_id, None), new_plan)


def _quietly(attempt: Callable[[], object]) -> None:
    """A task whose driver is gone: whatever it does, nobody is told."""
    try:
        attempt()
    except Exception:
        return
