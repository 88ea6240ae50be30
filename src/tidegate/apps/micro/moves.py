"""What the move of a shard costs, within an executor and between two (Elasticutor, figures 8, 9).

A move takes effect with a micro-batch. Its cost is what that batch takes longer than those before
and after it. Within an executor no state moves. Between two, the new one fetches the shard's state
from the checkpoint. For that, each executor keeps a cache of state files of its own, as executors
on two machines do: give a session on `local-cluster[2,2,1024]`.
"""

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import SparkSession

from tidegate.apps.micro.application import CALCULATOR
from tidegate.apps.micro.full_run import FullRun
from tidegate.apps.micro.options import MicroOptions
from tidegate.control.shards.route import Route
from tidegate.errors import AskedWrongly
from tidegate.pipelines.task_bounds import Tasks
from tidegate.spark.batch.result import BatchResult
from tidegate.spark.measure.operator_meter import nodes_of

CACHE = "tidegate-cache"
"""A relative directory: every executor has its own."""
WARM_BATCHES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One shard that got another task."""

    state_kb: float
    """The state of a shard, as asked for."""
    shard: int
    between: bool
    """Whether it went to another executor."""
    batch_s: float
    """The batch that moved it."""
    median_s: float
    """The batches before and after it, their median."""
    fetched_bytes: int
    """State that the batch fetched from the checkpoint."""
    waited_s: float = 0.0
    """From the wish to move it, at a random moment of a batch, to the begin of the batch that moved
    it. Nothing stops meanwhile."""
    boundary_s: float = 0.0
    """From the end of the batch before to the begin of that batch: what the control loop waits,
    which decides when a batch has ended."""
    exactly_once: bool = False
    """Whether the state has every row once after all moves of the run."""
    state_s: float = 0.0
    """How much longer the batch's slowest task read and wrote state than in the others."""

    @property
    def over_median(self) -> float:
        """The batch over the others."""
        return self.batch_s / self.median_s

    @property
    def cost_s(self) -> float:
        """How much longer the batch took than the others; below 0 by chance."""
        return self.batch_s - self.median_s

    def document(self) -> dict[str, Any]:
        """The figures as plain values."""
        return {
            "state_kb": self.state_kb,
            "shard": self.shard,
            "between": self.between,
            "batch_s": round(self.batch_s, 4),
            "median_s": round(self.median_s, 4),
            "over_median": round(self.over_median, 3),
            "cost_s": round(self.cost_s, 4),
            "fetched_bytes": self.fetched_bytes,
            "waited_s": round(self.waited_s, 4),
            "boundary_s": round(self.boundary_s, 4),
            "state_s": round(self.state_s, 4),
            "exactly_once": self.exactly_once,
        }


def measure_moves(
    spark: SparkSession,
    state_kb: float,
    *,
    tasks: int = 4,
    shards: int = 8,
    keys: int = 10_000,
    moves: int = 4,
    around: int = 5,
    batch_s: float = 0.1,
    warm_batches: int = WARM_BATCHES,
    seed: int = 1,
    generator_tasks: Tasks = None,
) -> list[Move]:
    """Move shards of a state size, within an executor and between two by turns, `moves` each.

    `around` batches before and after each move tell how long a batch takes without one. A session
    with one executor has only moves within it. `generator_tasks` are the tasks in front of the
    calculator; without them the generator runs where the source does.
    """
    if tasks < 2 or shards <= tasks:
        raise AskedWrongly(
            f"{shards} shards on {tasks} tasks: give 2 tasks or more, and more shards than tasks"
        )
    options = MicroOptions(
        keys=keys, skew=0.0, omega=0.0, state_kb=state_kb, shards=shards, fill=True
    )
    with tempfile.TemporaryDirectory(prefix="tidegate-moves-") as directory:
        full = FullRun(
            spark,
            options,
            Path(directory),
            tasks=tasks,
            batch_rows=max(1, round(tasks * batch_s / options.row_s)),
            seed=seed,
            options={"cache": str(Path(directory) / CACHE) if _in_one_process(spark) else CACHE},
            generator_tasks=generator_tasks,
        )
        found: list[Move] = []
        try:
            full.await_batches(warm_batches)
            moments = np.random.default_rng(seed)
            for number in range(moves):
                for between in (False, True):
                    moment = float(moments.random())
                    made = _move(full, number, between, around, state_kb, moment)
                    found += [] if made is None else [made]
        finally:
            full.stop()
        right = full.exactly_once()
    return [replace(move, exactly_once=right) for move in found]


def _in_one_process(spark: SparkSession) -> bool:
    return bool(spark.sparkContext._jsc.sc().isLocal())


def _move(
    full: FullRun, number: int, between: bool, around: int, state_kb: float, moment: float
) -> Move | None:
    """Move one shard; None if there is no task to move it to.

    A batch has just ended when this begins. `moment` says after which part of a batch the wish
    comes: right after the end of one it would always wait for the shortest time.
    """
    before = full.await_batches(around)
    last = before[-1]
    chosen = choose(_route(last), nodes_of(last.of(CALCULATOR)), number, between)
    if chosen is None:
        return None
    shard, task = chosen
    time.sleep(moment * float(np.median([turn.seconds for turn in full.turns()[-around:]])))
    asked_s = time.time()
    full.run.reroute(CALCULATOR, {shard: task})
    after = full.await_batches(around + 2)  # the one that ran already, and the one that moves
    route = _route(last)
    place = next((at for at, one in enumerate(after) if _route(one) != route), None)
    if place is None:
        return None
    moving = after[place]
    previous = after[place - 1] if place else last
    others = [*before, *after[:place], *after[place + 1 :]]
    return Move(
        state_kb=state_kb,
        shard=shard,
        between=_node_of_shard(last, shard) != _node_of_shard(moving, shard),
        batch_s=moving.duration_s,
        median_s=float(np.median([one.duration_s for one in others])),
        fetched_bytes=sum(report.durable_bytes for report in moving.of(CALCULATOR)),
        waited_s=max(0.0, moving.started_s - asked_s),
        boundary_s=max(0.0, moving.started_s - previous.ended_s),
        state_s=_state_s(moving) - float(np.median([_state_s(one) for one in others])),
    )


def choose(
    route: Sequence[int], nodes: Sequence[str], number: int, between: bool
) -> tuple[int, int] | None:
    """A shard and its new task: from the task with most shards to the one with fewest.

    `nodes` names the executor of each task. `number` chooses among the shards of the fullest task,
    so that not the same one always moves. None if no task is where the shard should go.
    """
    counts = np.bincount(route, minlength=len(nodes))
    for origin in np.argsort(-counts, kind="stable").tolist():
        able = [
            task
            for task, node in enumerate(nodes)
            if task != origin and (node != nodes[origin]) is between
        ]
        if able and counts[origin] > 0:
            shards = [shard for shard, task in enumerate(route) if task == origin]
            return shards[number % len(shards)], min(able, key=lambda task: int(counts[task]))
    return None


def _state_s(result: BatchResult) -> float:
    """The time of the slowest task outside its function: reading and writing state."""
    return max((one.busy_s - one.function_s for one in result.of(CALCULATOR)), default=0.0)


def _route(result: BatchResult) -> Route:
    return result.plan.operators[CALCULATOR].route


def _node_of_shard(result: BatchResult, shard: int) -> str:
    return nodes_of(result.of(CALCULATOR))[_route(result)[shard]]
