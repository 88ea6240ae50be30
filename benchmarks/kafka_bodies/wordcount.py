"""Spark's own `structured_kafka_wordcount.py`, unchanged, under `tidegate run` in a child process.

The program prints a table of all counts after every micro-batch. What it has counted is read from
the last table that is whole, and what Tidegate did from the records of the run.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pyspark

from tidegate.control.record import Record
from tidegate.errors import TidegateError
from tidegate.recording import read_records

PROGRAM = (
    Path(pyspark.__file__).parent
    / "examples/src/main/python/sql/streaming/structured_kafka_wordcount.py"
)
SHUFFLE_PARTITIONS = 24
"""Spark's default is 200. As many tasks as that, one after the other, are what a second executor
speeds up, so a stateful program with few rows needs executors, too."""
_LOOK_S = 0.25
_END_S = 60.0
_TABLE_LINE = re.compile(r"^\|\s*(\S+)\s*\|\s*(\d+)\s*\|$", re.MULTILINE)
_FRAME = "+\n"


@dataclass(frozen=True, slots=True)
class Cluster:
    """The executors of one core each that the program may have, and its latency target."""

    executors: int
    target: str

    def words(self) -> list[str]:
        """The options of `tidegate run`."""
        return [
            *("--target", self.target, "--executors", f"1:{self.executors}"),
            *("--master", f"local-cluster[{self.executors},1,1024]", "--kafka"),
            *("--conf", f"spark.sql.shuffle.partitions={SHUFFLE_PARTITIONS}"),
            *("--conf", "spark.ui.enabled=false"),
        ]


class RunningWordCount:
    """The program, from its start to its end; use it in a `with` block."""

    def __init__(self, root: Path, cluster: Cluster, servers: str, topic: str) -> None:
        self._out, self._err = root / "program.out", root / "program.err"
        self._place = root / "records"
        command = [sys.executable, "-m", "tidegate", "run", *cluster.words()]
        command += ["--records", str(self._place), str(PROGRAM), servers, "subscribe", topic]
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._process = subprocess.Popen(
                command,
                stdout=out,
                stderr=err,
                cwd=root,
                env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"},
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.end()

    def end(self) -> None:
        """Ctrl-C for the program and its executors; they are killed if that does not end them."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGINT)
            try:
                self._process.wait(_END_S)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()

    @property
    def runs(self) -> bool:
        """Whether it still runs; a failed micro-batch ends the program."""
        return self._process.poll() is None

    @property
    def reads(self) -> bool:
        """Whether its first micro-batch is done: from then on it misses no record."""
        return "Batch: 0" in self._out.read_text(errors="replace")

    def counts(self) -> dict[int, int]:
        """The counts by the last table that was printed in full."""
        blocks = self._out.read_text(errors="replace").split("\nBatch: ")[1:]
        whole = [block for block in blocks if block.count(_FRAME) >= 3]
        lines = _TABLE_LINE.findall(whole[-1]) if whole else []
        return {int(word): int(number) for word, number in lines}

    def records(self) -> list[Record]:
        """What Tidegate has recorded so far."""
        return list(read_records(self._place)) if self._place.exists() else []

    def executors(self) -> int:
        """The executors that it has by the last record; 0 before the first one."""
        return next((r.measurement.cores_granted for r in reversed(self.records())), 0)

    def wait(self, condition: Callable[[], bool], patience_s: float, what: str) -> bool:
        """Wait for a condition; False when time is up. An error if the program ends meanwhile."""
        until_s = time.monotonic() + patience_s
        while not condition():
            if not self.runs:
                last = self._err.read_text(errors="replace")[-2000:]
                raise TidegateError(f"the program ended before {what}:\n{last}")
            if time.monotonic() > until_s:
                return False
            time.sleep(_LOOK_S)
        return True
