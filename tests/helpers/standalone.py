"""A standalone Spark cluster in child processes: one master, one worker, on the loopback."""

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"


@dataclass(frozen=True, slots=True)
class Standalone:
    """A running cluster."""

    url: str
    master: subprocess.Popen
    worker: subprocess.Popen


@contextmanager
def standalone(root: Path, cores: int = 4) -> Iterator[Standalone]:
    """Start a master and a worker; they end with the block."""
    started: list[subprocess.Popen] = []

    def start(name: str, *arguments: str) -> Path:
        log = root / f"{name}.log"
        with log.open("wb") as out:
            environment = {
                **os.environ,
                "SPARK_LOCAL_IP": "127.0.0.1",
                "SPARK_WORKER_DIR": str(root / "work"),
            }
            command = [str(_CLASS), *arguments]
            started.append(subprocess.Popen(command, stdout=out, stderr=out, env=environment))
        return log

    try:
        log = start(
            "master",
            "org.apache.spark.deploy.master.Master",
            *("--host", "127.0.0.1", "--port", "0", "--webui-port", "0"),
        )
        url = _found(log, r"Starting Spark master at (spark://\S+)")
        log = start(
            "worker",
            "org.apache.spark.deploy.worker.Worker",
            *("--host", "127.0.0.1", "--webui-port", "0"),
            *("--cores", str(cores), "--memory", "4g", url),
        )
        _found(log, r"(Successfully registered with master)")
        yield Standalone(url, *started)
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()


def _found(log: Path, pattern: str) -> str:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        match = re.search(pattern, log.read_text(errors="replace"))
        if match is not None:
            return match[1]
        time.sleep(0.05)
    raise AssertionError(f"'{pattern}' did not appear: {log.read_text(errors='replace')[-2000:]}")
