"""kill -9 of the driver and of the broker, round after round: every record is counted once.

A producer sends all the time. What it knows the broker to have acknowledged is compared, key by
key, with the state and with what the sink was given. The short form runs in `make test`; `make
chaos ROUNDS=10` runs more rounds.
"""

import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import tidegate as tg
from tests.helpers.places import HELPERS
from tests.helpers.processes import kill_tree, pass_time, wait_for
from tests.helpers.rounds import Rounds
from tidegate.spark.kafka.broker import Broker
from tidegate.spark.kafka.produced import Produced
from tidegate.spark.kafka.producer import ProducerProcess
from tidegate.spark.kafka.topic_load import TopicLoad

pytestmark = [pytest.mark.spark, pytest.mark.chaos]
ROUNDS = int(os.environ.get("TIDEGATE_CHAOS_ROUNDS", "1"))
DRIVER = HELPERS / "kafka_chaos_driver.py"
LOAD = TopicLoad.of("constant:1000", "zipf:200,0.8", seconds=7200.0, seed=3)
KINDS = ["kill broker and driver", "kill driver", "kill broker"]
MORE = 1 << 60
"""More records than there will ever be: the driver reads on."""


class Chaos:
    """A checkpoint and an output, through all rounds."""

    def __init__(self, root: Path, broker: Broker, topic: str) -> None:
        self.root, self.broker, self.topic = root, broker, topic
        self.out = root / "out"
        self.out.mkdir()
        self.want(MORE)
        self.chance = random.Random(ROUNDS)
        self.killed: Counter[str] = Counter()
        self.drivers = 0

    def want(self, rows: int) -> None:
        aside = self.root / ".wanted"
        aside.write_text(str(rows))
        aside.rename(self.root / "wanted")

    @contextmanager
    def driver(self) -> Iterator[subprocess.Popen]:
        """A driver that has started; it is killed at the end of the block."""
        self.drivers += 1
        with self.log.open("wb") as log:
            command = [sys.executable, str(DRIVER), str(self.root)]
            process = subprocess.Popen(
                [*command, self.broker.servers, self.topic, str(self.drivers)],
                stdout=log,
                stderr=log,
            )
            try:
                started = self.root / f"started-{self.drivers}"
                assert wait_for(started.exists, 180, process), self.said
                yield process
            finally:
                kill_tree(process)

    @property
    def log(self) -> Path:
        return self.root / f"log-{self.drivers}"

    @property
    def said(self) -> str:
        return self.log.read_text()[-3000:]

    def goes_on(self, process: subprocess.Popen, more: int) -> None:
        """The driver hands so many more batches to its sink."""
        wanted = len(list(self.out.glob("*.json"))) + more
        done = wait_for(lambda: len(list(self.out.glob("*.json"))) >= wanted, 180, process)
        assert done, self.said

    def round(self, kind: str, process: subprocess.Popen) -> None:
        """One kill at a random moment of a batch; a driver that was not killed goes on."""
        self.goes_on(process, 1 + self.chance.randrange(3))
        pass_time(process, self.chance.random() * 0.6)
        if "broker" in kind:
            self.broker.kill()
            self.killed["broker"] += 1
            pass_time(process, self.chance.random() * 3)
            assert process.poll() is None, self.said
        if "driver" in kind:
            kill_tree(process)
            self.killed["driver"] += 1
        if "broker" in kind:
            self.broker.restart()
        if "driver" not in kind:
            self.goes_on(process, 2)

    def finish(self, producer: ProducerProcess) -> Produced:
        """A last driver, whom nothing is done to, reads all that there is."""
        with self.driver() as process:
            self.goes_on(process, 1)
            done = producer.stop()
            self.want(done.rows)
            assert wait_for((self.root / "finished").exists, 180, process), self.said
        return done

    def judge(self, done: Produced) -> None:
        """State and output equal what the broker acknowledged."""
        expected = {str(key): count for key, count in done.per_key.items()}
        assert done.failed == 0 and sum(expected.values()) == done.rows > 0
        state = tg.read_state(str(self.root / "ck"), "sums").to_pylist()
        assert {row["k"]: row["n"] for row in state} == expected
        assert not list(self.out.glob("differs-*"))
        output: dict[str, int] = {}
        for file in sorted(self.out.glob("*.json")):
            output |= {row["k"]: row["n"] for row in json.loads(file.read_text())}
        assert output == expected


def test_every_record_is_counted_once(
    tmp_path: Path, broker: Broker, topic: str, say_now: Callable[[str], None]
) -> None:
    chaos = Chaos(tmp_path, broker, topic)
    with ProducerProcess(broker.servers, topic, LOAD) as producer:
        producer.begin()
        rounds = Rounds(ROUNDS, say_now if ROUNDS > 1 else print)
        left = [KINDS[number % len(KINDS)] for number in range(ROUNDS)]
        while left:
            with chaos.driver() as process:
                while left and process.poll() is None:
                    kind = left.pop(0)
                    rounds.begin(kind)
                    chaos.round(kind, process)
        done = chaos.finish(producer)
    chaos.judge(done)
    batches = len(list(chaos.out.glob("*.json")))
    print(
        f"killed {dict(chaos.killed)}; {done.rows} records of {len(done.keys)} keys, "
        f"{batches} batches: each record is counted once",
        flush=True,
    )
    assert chaos.killed["driver"] >= 1 and chaos.killed["broker"] >= 1
