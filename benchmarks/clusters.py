"""The demo's load on clusters: executors come and go, and a host is lost during the surge.

`hosts` is a standalone cluster whose workers are on four hosts of this machine: network namespaces
with their own addresses and directories (`spark/clusters/hosts.py`), and a checkpoint that all of
them have. At the top of the surge all processes of one host are killed; its worker is back after
half a minute.

`yarn` is Hadoop's YARN with four NodeManagers on addresses of the loopback, and the checkpoint on
HDFS (`spark/clusters/yarn.py`). A NodeManager is killed with its executor, and is back after half a
minute.

`s3` is the standalone cluster of `hosts` with the checkpoint on a store that speaks S3's protocol
(`spark/clusters/store.py`).

Each of them first shows how much longer the first micro-batch on a new executor takes. Each has a
process of its own, because a JVM keeps the jars and the configuration that it was started with. The
demo's operators sleep, so that executors help on a machine with few cores.

Options: `--seconds 180`, `--only hosts`, `--target '4 seconds'`, `--log FILE` (what Spark says).
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.clusters_bodies.bodies import BODIES, SAID

from tidegate.benching import Aim, Bench, Options, at_least, at_most
from tidegate.errors import AskedWrongly, TidegateError, nearest
from tidegate.units import parse_duration

TARGET = "4 seconds"
WITHIN = 0.9
COLD_S = 3.0
"""How much longer the first micro-batch on a new executor may take."""
OPTIONS = ("seconds", "only", "target", "log")
LEAST_S, MOST_S = 30, 3600
_WORDS = 2000


@dataclass(frozen=True, slots=True)
class Asked:
    """What the caller asked for."""

    bodies: tuple[str, ...]
    seconds: float
    target_s: float
    log: str | None
    """Where the output of Spark's driver goes; None: nowhere."""


def asked_of(options: Options) -> Asked:
    """The options as they are used; wrong ones are refused before anything is started."""
    for name in options.extra:
        if name not in OPTIONS:
            raise AskedWrongly(f"bench clusters has no option '--{name}'{nearest(name, OPTIONS)}")
    only = options.extra.get("only")
    if only is not None and only not in BODIES:
        raise AskedWrongly(f"there is no cluster '{only}' here; give {' or '.join(BODIES)}")
    given = options.extra.get("seconds", "90" if options.quick else "180")
    seconds = float(given) if given.isdecimal() else 0.0
    if not LEAST_S <= seconds <= MOST_S:
        raise AskedWrongly(f"--seconds {given} is not possible; give {LEAST_S} to {MOST_S} seconds")
    return Asked(
        bodies=tuple(BODIES) if only is None else (only,),
        seconds=seconds,
        target_s=parse_duration(options.extra.get("target", TARGET)),
        log=options.extra.get("log"),
    )


def run(options: Options) -> Bench:
    """Run the load on each cluster."""
    asked = asked_of(options)
    results = [
        {"cluster": name, **_in_a_process(options, name, asked)}
        for name in options.progress.each(asked.bodies, lambda name: f"the cluster '{name}'")
    ]
    return Bench("clusters", results, [aim for row in results for aim in aims_of(row)])


def aims_of(row: Mapping[str, Any]) -> list[Aim]:
    """What one cluster should reach."""
    name = row["cluster"]
    right = bool(row["verified"] and row["lost"])
    what = f"{name}: counts equal to a recomputation, although a host was lost"
    cold = f"{name}: how much longer the first batch on a new executor is"
    return [
        at_least(f"{name}: seconds within target", row["within_target"], WITHIN),
        Aim(what, float(right), "= 1", right),
        at_most(cold, row["new_executor_extra_s"], COLD_S, "s"),
    ]


def _in_a_process(options: Options, name: str, asked: Asked) -> dict[str, Any]:
    """Run one cluster in a process of its own, which ends with Ctrl-C as this one does."""
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as scratch:
        answer = Path(scratch) / "answer.json"
        words = [name, str(asked.seconds), str(asked.target_s), str(answer)]
        given = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        if asked.log is not None:
            given["TIDEGATE_SPARK_LOG"] = asked.log
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.clusters_bodies.bodies", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=os.environ | given,
        )
        said = ""
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if line.startswith(SAID):
                    options.progress.doing(line.removeprefix(SAID).strip())
                said = (said + line)[-_WORDS:]
        finally:
            status = process.wait()
        if not answer.is_file():
            raise TidegateError(f"the cluster '{name}' ended with status {status}: {said.strip()}")
        found: dict[str, Any] = json.loads(answer.read_text())
        return found
