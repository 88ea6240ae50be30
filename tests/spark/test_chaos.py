"""`kill -9` for real: drivers and executors die at random moments, and nothing is lost or doubled.

The short form runs in `make test`; `make chaos` sets TIDEGATE_CHAOS_ROUNDS to 20 or more.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tests.helpers.feed import Feed
from tests.helpers.places import HELPERS

pytestmark = [pytest.mark.spark, pytest.mark.chaos]
ROUNDS = int(os.environ.get("TIDEGATE_CHAOS_ROUNDS", "2"))
DRIVER = HELPERS / "chaos_driver.py"


def rows(seed: int) -> pa.Table:
    chance = np.random.default_rng(seed)
    names = [f"key-{number}" for number in chance.integers(0, 200, 600)]
    return pa.table({"k": names, "v": chance.integers(0, 100, 600)})


def children(pid: int) -> list[int]:
    """All processes below one, found by their parents."""
    found: list[int] = []
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
    waiting = [pid]
    while waiting:
        below = parents.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def executors(pid: int) -> list[int]:
    """Executor processes below a driver."""
    found = []
    for child in children(pid):
        try:
            command = Path(f"/proc/{child}/cmdline").read_bytes()
        except OSError:
            continue
        if b"CoarseGrainedExecutorBackend" in command:
            found.append(child)
    return found


def kill_tree(process: subprocess.Popen) -> None:
    for pid in [process.pid, *children(process.pid)]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    process.wait()


def wait_for(condition, seconds: float, process: subprocess.Popen) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return True
        if process.poll() is not None:
            return bool(condition())
        process_wait(process, 0.02)
    return False


def batches_written(directory: Path) -> int:
    return len(list(directory.glob("*.json")))


def process_wait(process: subprocess.Popen, seconds: float) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return


def test_kill_nine_of_drivers_and_executors(tmp_path):
    feed = Feed(tmp_path / "in", "k string, v long")
    (tmp_path / "out").mkdir()
    chance = random.Random(ROUNDS)
    batches = 0
    kills = {"driver": 0, "executor": 0}
    for attempt in range(ROUNDS + 1):
        last = attempt == ROUNDS
        for _ in range(3):
            feed.add(rows(batches))
            batches += 1
        (tmp_path / "finished").unlink(missing_ok=True)
        log = (tmp_path / f"log-{attempt}").open("wb")
        process = subprocess.Popen(
            [sys.executable, str(DRIVER), str(tmp_path), "local-cluster[2,2,1024]", str(attempt)],
            stdout=log,
            stderr=log,
            env={**os.environ, "TIDEGATE_CACHE": "cache"},
        )
        try:
            said = f"the driver of round {attempt} did not start: {tmp_path}/log-{attempt}"
            assert wait_for(lambda n=attempt: (tmp_path / f"started-{n}").exists(), 180, process), (
                said
            )
            if not last:
                seen = batches_written(tmp_path / "out")
                more = chance.choice([0, 1, 1, 2, 2])
                wait_for(
                    lambda n=seen + more: batches_written(tmp_path / "out") >= n,
                    120,
                    process,
                )
                process_wait(process, chance.random() * 0.6)
                victims = executors(process.pid) if attempt % 2 else []
                if victims:  # an executor dies; the driver must carry on
                    os.kill(chance.choice(victims), signal.SIGKILL)
                    kills["executor"] += 1
                    process_wait(process, 1 + chance.random() * 3)
                if process.poll() is None:
                    kills["driver"] += 1
            else:
                # As long as it takes, while batches go on: another batch every two minutes.
                finished, written = False, -1
                while not finished and batches_written(tmp_path / "out") != written:
                    written = batches_written(tmp_path / "out")
                    finished = (
                        wait_for(
                            lambda n=written: (
                                (tmp_path / "finished").exists()
                                or batches_written(tmp_path / "out") > n
                            ),
                            120,
                            process,
                        )
                        and (tmp_path / "finished").exists()
                    )
                assert finished, Path(log.name).read_text()[-3000:]
        finally:
            kill_tree(process)
            log.close()
    assert kills["driver"] > 0
    assert kills["executor"] > 0
    expected: dict[str, tuple[int, int]] = {}
    for row in feed.all().to_pylist():
        count, total = expected.get(row["k"], (0, 0))
        expected[row["k"]] = (count + 1, total + row["v"])
    state = tg.read_state(str(tmp_path / "ck"), "sums").to_pylist()
    assert {row["k"]: (row["n"], row["total"]) for row in state} == expected
    assert not list((tmp_path / "out").glob("differs-*"))
    output: dict[str, tuple[int, int]] = {}
    files = sorted((tmp_path / "out").glob("*.json"))
    assert 0 < len(files) <= batches
    for file in files:
        output |= {row["k"]: (row["n"], row["total"]) for row in json.loads(file.read_text())}
    assert output == expected
