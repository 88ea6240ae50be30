"""`tidegate run` as a process of its own, on a program of somebody else."""

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyspark

from tests.helpers.processes import kill_tree, wait_for

SHIPPED = Path(pyspark.__file__).parent / "examples/src/main/python/sql/streaming"
"""Spark's own streaming examples, which come with the package."""
PATIENCE_S = 240.0
_ROW = re.compile(r"^\|(.+)\|$")


class RunningProgram:
    """A child process in a group of its own, as a job of a shell has; use it in a `with` block."""

    def __init__(self, directory: Path, command: list[str], **environment: str) -> None:
        self._out, self._err = directory / "stdout.txt", directory / "stderr.txt"
        with self._out.open("w") as out, self._err.open("w") as err:
            self.process = subprocess.Popen(
                command,
                stdout=out,
                stderr=err,
                cwd=directory,
                env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", **environment},
                start_new_session=True,
            )

    def __enter__(self) -> "RunningProgram":
        return self

    def __exit__(self, *error: object) -> None:
        if self.process.poll() is None:
            kill_tree(self.process)

    @property
    def stdout(self) -> str:
        return self._out.read_text(errors="replace")

    @property
    def stderr(self) -> str:
        return self._err.read_text(errors="replace")

    def wait_until(self, condition) -> None:
        """Wait for a condition while it runs."""
        assert wait_for(condition, PATIENCE_S, self.process), self.told()

    def ctrl_c(self) -> int:
        """Ctrl-C as of a terminal: the whole group is signalled. Returns the exit code."""
        os.killpg(self.process.pid, signal.SIGINT)
        return self.wait()

    def wait(self) -> int:
        try:
            return self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"did not end: {self.told()}") from None

    def told(self) -> str:
        return f"{self.stdout[-2000:]}\n{self.stderr[-6000:]}"


def tidegate_run(*words: str) -> list[str]:
    """The command line of `tidegate run`."""
    return [sys.executable, "-m", "tidegate", "run", *words]


def last_table(stdout: str) -> list[list[str]]:
    """The rows of the last batch that Spark's console sink has printed in full."""
    blocks = stdout.split("Batch: ")[1:]
    whole = [block for block in blocks if block.count("+\n") >= 3]
    if not whole:
        return []
    rows = [_ROW.match(line) for line in whole[-1].splitlines()]
    return [[cell.strip() for cell in row[1].split("|")] for row in rows if row][1:]


def words_counted(stdout: str) -> Counter[str]:
    """The counts of the last batch, whose last two columns are a word and its count."""
    found: Counter[str] = Counter()
    for row in last_table(stdout):
        found[row[-2]] += int(row[-1])
    return found
