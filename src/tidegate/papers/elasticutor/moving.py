"""Figures 8 and 9: what it takes to move a shard, within an executor and between two.

The paper's move synchronises with the tasks that send to the shard, then migrates its state. Ours
waits for the next micro-batch, in which the new task fetches the state from the checkpoint. Nothing
stops while it waits.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from pyspark.sql import SparkSession

from tidegate.apps.micro.moves import Move, measure_moves
from tidegate.apps.micro.options import MicroOptions
from tidegate.apps.micro.throughput import measure_throughput
from tidegate.apps.paradigms import RESOURCE_CENTRIC
from tidegate.apps.work_done import WorkDone
from tidegate.benching import Aim, at_least, at_most
from tidegate.papers.elasticutor.dynamics import all_right
from tidegate.papers.figure import Asked, Compared, Findings
from tidegate.papers.sessions import spark_on
from tidegate.pipelines.task_bounds import Tasks
from tidegate.view.pages.paper import Curve, Picture

MASTER = "local-cluster[2,2,1024]"
SMALL_KB, LARGE_KB = 32.0, 32_768.0
STATE_KB, QUICK_STATE_KB = (SMALL_KB, 1024.0, 8192.0, LARGE_KB), (SMALL_KB, LARGE_KB)
UPSTREAM, QUICK_UPSTREAM = (1, 4, 16), (1, 16)
CENTRAL_UPSTREAM = (1, 16)
PAPERS_SYNCHRONISATION_MS = 2.0
"""5.1: around 2 ms, regardless of the number of upstream executors."""
UNEVEN = 1.2
"""The skew with which four tasks are out of balance after each shuffle, so that the
resource-centric way restarts."""
MOST_OVER_MEDIAN = 2.0
_WISH, _COST = "waiting for the end of the batch", "longer batch in all"
_BOUNDARY = "from the end of a batch to the next"
_CENTRAL_PAPER = "2 to 3 orders of magnitude above 2"
_WITHIN, _BETWEEN = "within an executor", "between executors"
_NOTES = (
    "A move costs what its micro-batch takes longer than those around it; below 0 by chance.",
    "Two executors on one machine have a cache of state files each. What one of them lacks it"
    " fetches from the checkpoint, which is on the same disk and not behind a network of 1 Gbit/s.",
)


def run_breakdown(asked: Asked) -> Findings:
    """Figure 8."""
    count, around = (2, 3) if asked.quick else (5, 4)
    with spark_on(MASTER) as spark:
        asked.progress.expect(2)
        asked.progress.step("moves of 32 KB")
        moves = measure_moves(spark, SMALL_KB, moves=count, around=around)
        asked.progress.step("restarts by the resource-centric way")
        asked.say(f"{len(moves)} moves of 32 KB")
        central = _restarts(spark, asked)
        asked.say(f"{len(central.breaks_s)} restarts by the resource-centric way")
    return Findings(
        compared=tuple(breakdown(moves, central.breaks_s)),
        aims=(*pause_aims(moves, central.breaks_s), all_right([central, *moves])),
        pictures=(_parts_picture(moves),),
        notes=(
            "The wish to move comes at a random moment of a batch and waits until the batch ends,"
            " half a batch on average. That stops nothing. The control loop decides when a batch"
            " has ended, so its decisions wait for the time between two batches alone.",
            "Resource-centric is the time without a batch when the query is stopped and started. It"
            " is paid once for all shards of a change, the paper's once for each shard.",
            *_NOTES,
        ),
    )


def _restarts(spark: SparkSession, asked: Asked, generator_tasks: Tasks = None) -> WorkDone:
    """The resource-centric way under shuffles that make it restart several times."""
    return measure_throughput(
        spark,
        RESOURCE_CENTRIC,
        MicroOptions(skew=UNEVEN, omega=16.0, shards=32),
        tasks=4,
        seconds=8.0 if asked.quick else 15.0,
        batch_s=0.2,
        generator_tasks=generator_tasks,
    )


def parts_ms(moves: Sequence[Move]) -> dict[str, float]:
    """The medians of what moves are made of, in milliseconds."""
    if not moves:
        return {}
    state = float(np.median([move.state_s for move in moves]))
    cost = float(np.median([move.cost_s for move in moves]))
    waited = float(np.median([move.waited_s for move in moves]))
    boundary = float(np.median([move.boundary_s for move in moves]))
    return {
        _WISH: 1e3 * waited,
        _BOUNDARY: 1e3 * boundary,
        "reading state": 1e3 * state,
        "the rest of the batch": 1e3 * (cost - state),
        _COST: 1e3 * cost,
    }


def by_place(moves: Sequence[Move]) -> dict[str, list[Move]]:
    """Moves within an executor, and between two."""
    return {
        name: [move for move in moves if move.between is between]
        for name, between in ((_WITHIN, False), (_BETWEEN, True))
    }


def breakdown(moves: Sequence[Move], breaks_s: Sequence[float]) -> list[Compared]:
    """Figure 8's bars. The paper draws them; its text prints the synchronisation alone.

    In the place of that synchronisation, the control loop's decision waits for the next batch to
    begin. A wish that comes while a batch runs waits for its end.
    """
    rows = []
    for place, mine in by_place(moves).items():
        for part, taken_ms in parts_ms(mine).items():
            waits = part == _BOUNDARY
            name = f"synchronisation; ours: {part}" if waits else part
            theirs = PAPERS_SYNCHRONISATION_MS if waits else None
            rows.append(Compared(f"{place}: {name}, ms", theirs, round(taken_ms, 1)))
    name = "resource-centric: synchronisation, ms"
    rows.append(Compared(name, _CENTRAL_PAPER, _median_ms(breaks_s)))
    return rows


def pause_aims(moves: Sequence[Move], breaks_s: Sequence[float]) -> list[Aim]:
    """A restart pauses for longer than a move costs; there have to be some of both."""
    made = [
        at_least("moves of 32 KB", len(moves), 1),
        at_least("restarts by the resource-centric way", len(breaks_s), 1),
    ]
    costs = [parts_ms(mine)[_COST] for mine in by_place(moves).values() if mine]
    pause_ms = _median_ms(breaks_s)
    if pause_ms is None or not costs:
        return made
    name = "resource-centric pause over a move's cost"
    return [*made, at_least(name, pause_ms / max(*costs, 1.0), 2.0)]


def _parts_picture(moves: Sequence[Move]) -> Picture:
    lines = tuple(
        Curve(place, tuple(parts_ms(mine)), tuple(parts_ms(mine).values()))
        for place, mine in by_place(moves).items()
        if mine
    )
    return Picture("A move of 32 KB", "part", "milliseconds", lines)


def run_sizes(asked: Asked) -> Findings:
    """Figure 9: (a) against the tasks upstream, (b) against the state of a shard."""
    count, around = (2, 3) if asked.quick else (3, 4)
    upstream: dict[float, list[Move]] = {}
    sizes: dict[float, list[Move]] = {}
    central: dict[float, WorkDone] = {}
    with spark_on(MASTER) as spark:
        numbers = QUICK_UPSTREAM if asked.quick else UPSTREAM
        states_kb = QUICK_STATE_KB if asked.quick else STATE_KB
        asked.progress.expect(len(numbers) + len(CENTRAL_UPSTREAM) + len(states_kb))
        for tasks in numbers:
            asked.progress.step(f"{tasks} tasks upstream")
            upstream[tasks] = measure_moves(
                spark,
                SMALL_KB,
                moves=2,
                around=3,
                warm_batches=6,
                generator_tasks=(tasks, tasks),
            )
            asked.say(f"{tasks} tasks upstream: {_said(upstream[tasks])}")
        for tasks in CENTRAL_UPSTREAM:
            asked.progress.step(f"{tasks} tasks upstream, restarts by the resource-centric way")
            central[tasks] = done = _restarts(spark, asked, (tasks, tasks))
            asked.say(
                f"{tasks} tasks upstream: {len(done.breaks_s)} restarts of"
                f" {_median_ms(done.breaks_s)} ms"
            )
        for state_kb in states_kb:
            asked.progress.step(f"{state_kb:g} KB of state")
            sizes[state_kb] = measure_moves(
                spark, state_kb, moves=count, around=around, warm_batches=8
            )
            asked.say(f"{state_kb:g} KB: {_said(sizes[state_kb])}")
    return Findings(
        compared=(*upstream_rows(upstream), *central_rows(central), *size_rows(sizes)),
        aims=(
            *central_aims(central),
            *size_aims(sizes),
            all_right([*_all_moves(upstream, sizes), *central.values()]),
        ),
        pictures=(
            _costs_picture("Moves against the tasks upstream", "generator tasks", upstream),
            _costs_picture("Moves against the state of a shard", "KB", sizes),
        ),
        notes=(
            "No task upstream takes part in a move: its rows are routed when the batch is planned.",
            "Resource-centric stops the query and starts it again. Spark makes the tasks upstream"
            " anew for each batch, so a restart does not synchronise with each of them, as the"
            " paper's does.",
            *_NOTES,
        ),
    )


def _all_moves(*found: Mapping[float, Sequence[Move]]) -> list[Move]:
    return [move for one in found for moves in one.values() for move in moves]


def upstream_rows(found: Mapping[float, Sequence[Move]]) -> list[Compared]:
    """Part (a): the paper's synchronisation, and what a move within an executor costs here."""
    return [
        Compared(
            f"{tasks:g} tasks upstream: move {_WITHIN}, ms",
            PAPERS_SYNCHRONISATION_MS,
            cost_ms(by_place(moves)[_WITHIN]),
        )
        for tasks, moves in found.items()
    ]


def central_rows(found: Mapping[float, WorkDone]) -> list[Compared]:
    """Part (a) for the resource-centric way: the time without a batch at each restart."""
    return [
        Compared(
            f"{tasks:g} tasks upstream: resource-centric, ms",
            f"{_CENTRAL_PAPER}, and grows with the tasks",
            _median_ms(done.breaks_s),
        )
        for tasks, done in found.items()
    ]


def central_aims(found: Mapping[float, WorkDone]) -> list[Aim]:
    """With any number of tasks upstream there has to be a restart to compare with."""
    fewest = min((len(done.breaks_s) for done in found.values()), default=0)
    return [at_least("restarts by the resource-centric way, least of all points", fewest, 1)]


def size_rows(found: Mapping[float, Sequence[Move]]) -> list[Compared]:
    """Part (b). The paper's values are drawn only; within a node it calls them negligible."""
    rows = []
    for state_kb, moves in found.items():
        for place, mine in by_place(moves).items():
            theirs = "negligible" if place == _WITHIN else None
            rows.append(Compared(f"{state_kb:g} KB, {place}: ms", theirs, cost_ms(mine)))
            fetched = max((move.fetched_bytes for move in mine), default=0)
            name = f"{state_kb:g} KB, {place}: KB fetched"
            rows.append(Compared(name, None, round(fetched / 1024)))
    return rows


def size_aims(found: Mapping[float, Sequence[Move]]) -> list[Aim]:
    """The largest shard moves without a long batch, and its state really moves."""
    largest = max(found)
    between = by_place(found[largest])[_BETWEEN]
    if not between:
        return [Aim("moves of 32 MB between executors", 0.0, ">= 1", False)]
    over = max(move.over_median for move in between)
    fetched = min(move.fetched_bytes for move in between) / (largest * 1024)
    return [
        at_most("32 MB between executors: longest batch over median", over, MOST_OVER_MEDIAN),
        at_least("32 MB between executors: least share that was fetched", fetched, 0.5),
    ]


def cost_ms(moves: Sequence[Move]) -> float | None:
    """The median cost of moves in milliseconds; None without any."""
    return _median_ms([move.cost_s for move in moves])


def _median_ms(seconds: Sequence[float]) -> float | None:
    return round(1e3 * float(np.median(seconds)), 1) if len(seconds) else None


def _said(moves: Sequence[Move]) -> str:
    return ", ".join(f"{cost_ms(mine)} ms {place}" for place, mine in by_place(moves).items())


def _costs_picture(title: str, label: str, found: Mapping[float, Sequence[Move]]) -> Picture:
    lines = []
    for place in (_WITHIN, _BETWEEN):
        costs = {f"{at:g}": cost_ms(by_place(moves)[place]) for at, moves in found.items()}
        known = {at: cost for at, cost in costs.items() if cost is not None}
        lines.append(Curve(place, tuple(known), tuple(known.values())))
    return Picture(title, label, "milliseconds", tuple(lines))
