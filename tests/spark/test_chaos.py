"""Real faults, round after round: nothing is lost or doubled.

Drivers and executors are killed, a driver sleeps while its successor takes over, the disks of the
cache and of the checkpoint fill up, the source stalls. In `make test` an executor is killed and the
driver goes on; `make chaos ROUNDS=50` runs all faults. Drivers are also killed by
tests/spark/kafka/test_chaos.py.
"""

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tests.helpers.feed import Feed
from tests.helpers.places import HELPERS
from tests.helpers.processes import executors, kill_tree, pass_time, signal_tree, wait_for
from tests.helpers.rounds import Rounds
from tests.helpers.small_disk import full, small_disk

pytestmark = [pytest.mark.spark, pytest.mark.chaos]
ROUNDS = int(os.environ.get("TIDEGATE_CHAOS_ROUNDS", "0"))
ROWS = 600
DRIVER = HELPERS / "chaos_driver.py"
KINDS = [
    "kill driver",
    "kill executor",
    "driver sleeps",
    "cache full",
    "checkpoint full",
    "stalled source",
]


def rows(seed: int) -> pa.Table:
    chance = np.random.default_rng(seed)
    names = [f"key-{number}" for number in chance.integers(0, 200, ROWS)]
    return pa.table({"k": names, "v": chance.integers(0, 100, ROWS)})


class Chaos:
    """A checkpoint, its feed and its output, through all rounds."""

    def __init__(self, root: Path, disk: Path | None) -> None:
        self.root, self.disk = root, disk
        """The checkpoint's own disk, if we may mount one."""
        self.feed = Feed(root / "in", "k string, v long")
        self.out = root / "out"
        self.out.mkdir()
        self.checkpoint = (disk or root) / "ck"
        self.chance = random.Random(ROUNDS)
        self.met: Counter[str] = Counter()

    def add(self, batches: int) -> None:
        self.want(batches)
        for _ in range(batches):
            self.feed.add(rows(len(self.feed.batches)))

    def want(self, batches: int) -> None:
        """Tell drivers how many rows there will be in all."""
        total = sum(table.num_rows for table in self.feed.batches) + batches * ROWS
        aside = self.root / ".wanted"
        aside.write_text(str(total))
        aside.rename(self.root / "wanted")

    @property
    def written(self) -> int:
        return len(list(self.out.glob("*.json")))

    @contextmanager
    def driver(self, name: str, cache: str = "cache") -> Iterator[subprocess.Popen]:
        """A driver that has started; it is killed at the end of the block."""
        (self.root / "finished").unlink(missing_ok=True)
        with (self.root / f"log-{name}").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, str(DRIVER), str(self.root), str(self.checkpoint), name],
                stdout=log,
                stderr=log,
                env={**os.environ, "TIDEGATE_CACHE": cache},
            )
            try:
                started = self.root / f"started-{name}"
                assert wait_for(started.exists, 180, process), self.log(name)
                yield process
            finally:
                kill_tree(process)

    def log(self, name: str) -> str:
        return (self.root / f"log-{name}").read_text()[-3000:]

    def goes_on(self, process: subprocess.Popen, more: int, name: str) -> None:
        """The driver writes so many more batches, or has read all that there is."""
        wanted = min(self.written + more, len(self.feed.batches))
        done = wait_for(
            lambda: self.written >= wanted or (self.root / "finished").exists(), 120, process
        )
        assert done, self.log(name)

    def lose_an_executor(self) -> None:
        """One is killed in the middle of a batch; the driver goes on and reads what comes later."""
        self.add(3)
        self.want(2)
        with self.driver("alone") as process:
            self.goes_on(process, 1, "alone")
            pass_time(process, self.chance.random() * 0.6)
            os.kill(self.chance.choice(executors(process.pid)), signal.SIGKILL)
            self.add(2)
            self.read_all(process, "alone")

    def round(self, number: int, kind: str) -> None:
        """One round with one kind of fault, after which the driver is killed."""
        self.add(3)
        name = str(number)
        if kind == "cache full":
            with (
                small_disk(self.root / f"cache-{number}", "1m") as cache,
                full(cache or self.root / "nowhere"),
                self.driver(name, str(cache)) as process,
            ):
                self.goes_on(process, 2, name)
        else:
            with self.driver(name) as process:
                self._fault(kind, process, name)
        self.met[kind] += 1

    def _fault(self, kind: str, process: subprocess.Popen, name: str) -> None:
        more = self.chance.choice([0, 1, 1, 2])
        if self.written == 0:
            # A driver that dies while Spark writes its first offsets leaves a file there, and Spark
            # itself refuses to begin batch 0 beside it.
            more = max(more, 1)
        if kind != "stalled source":
            self.goes_on(process, more, name)
            pass_time(process, self.chance.random() * 0.6)
        if kind == "kill executor":
            victims = executors(process.pid)
            if victims:
                os.kill(self.chance.choice(victims), signal.SIGKILL)
                pass_time(process, 1 + self.chance.random() * 3)
        elif kind == "driver sleeps":
            self._sleeps(process, name)
        elif kind == "checkpoint full":
            self.add(1)
            assert self.disk is not None
            with full(self.disk):
                pass_time(process, 20)
            assert process.poll() is not None, "a driver that cannot commit must end"
        elif kind == "stalled source":
            self.want(2)
            self.goes_on(process, 3, name)
            pass_time(process, 5)
            assert process.poll() is None, self.log(name)
            self.add(2)
            self.goes_on(process, 2, name)

    def _sleeps(self, process: subprocess.Popen, name: str) -> None:
        """It wakes up when its successor has committed batches: it must end, and change nothing."""
        self.add(2)
        self.want(1)  # so that neither of them has read everything
        signal_tree(process, signal.SIGSTOP)
        with self.driver(f"{name}b") as successor:
            self.goes_on(successor, 1, f"{name}b")
            signal_tree(process, signal.SIGCONT)
            wait_for(lambda: process.poll() is not None, 90, successor)
            assert process.poll() not in (None, 0), self.log(name)
            assert "has taken over the checkpoint" in self.log(name), self.log(name)
            self.add(1)
            self.goes_on(successor, 1, f"{name}b")

    def finish(self) -> None:
        """A last driver without faults reads everything."""
        with self.driver("last") as process:
            self.read_all(process, "last")

    def read_all(self, process: subprocess.Popen, name: str) -> None:
        """As long as it takes, while another batch is written every two minutes."""
        before = -1
        while self.written != before and process.poll() is None:
            before = self.written
            wait_for(lambda n=before: self.written > n, 120, process)
        assert wait_for((self.root / "finished").exists, 120, process), self.log(name)

    def judge(self) -> None:
        """State and output equal a batch computation over all rows."""
        expected: dict[str, tuple[int, int]] = {}
        for row in self.feed.all().to_pylist():
            count, total = expected.get(row["k"], (0, 0))
            expected[row["k"]] = (count + 1, total + row["v"])
        state = tg.read_state(str(self.checkpoint), "sums").to_pylist()
        assert {row["k"]: (row["n"], row["total"]) for row in state} == expected
        assert not list(self.out.glob("differs-*"))
        output: dict[str, tuple[int, int]] = {}
        files = sorted(self.out.glob("*.json"))
        assert 0 < len(files) <= len(self.feed.batches)
        for file in files:
            output |= {row["k"]: (row["n"], row["total"]) for row in json.loads(file.read_text())}
        assert output == expected


def test_state_and_output_survive_the_loss_of_an_executor(tmp_path):
    chaos = Chaos(tmp_path, None)
    chaos.lose_an_executor()
    chaos.judge()


@pytest.mark.skipif(ROUNDS == 0, reason="takes a minute for each round; make chaos runs it")
def test_state_and_output_survive_every_fault(tmp_path, say_now):
    with ExitStack() as stack:
        disk = stack.enter_context(small_disk(tmp_path / "disk", "256m")) if ROUNDS > 2 else None
        chaos = Chaos(tmp_path, disk)
        kinds = KINDS[:ROUNDS] if ROUNDS <= 2 else KINDS
        if ROUNDS > 2 and disk is None:
            print("no disk can be mounted here: rounds with full disks are left out")
            kinds = [kind for kind in KINDS if "full" not in kind]
        rounds = Rounds(ROUNDS, say_now if ROUNDS > 1 else print)
        for number in range(ROUNDS):
            kind = kinds[number % len(kinds)]
            rounds.begin(kind)
            chaos.round(number, kind)
        chaos.finish()
        chaos.judge()
        print(f"{dict(chaos.met)}; {chaos.feed.all().num_rows} rows", flush=True)
        assert len(chaos.met) == len(kinds)
