"""Figure 12: throughput against the state of a shard, while shards move between executors.

In one process no state moves, so this runs on three executors with a cache of state files each.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.apps.micro.moves import CACHE
from tidegate.apps.micro.options import MicroOptions
from tidegate.apps.micro.throughput import measure_throughput
from tidegate.apps.paradigms import OURS
from tidegate.apps.work_done import WorkDone
from tidegate.benching import Aim, at_least
from tidegate.papers.elasticutor.dynamics import all_right
from tidegate.papers.elasticutor.one_executor import Load, simulate
from tidegate.papers.elasticutor.skews import SECOND_SKEW
from tidegate.papers.figure import Asked, Compared, Findings
from tidegate.papers.sessions import spark_on
from tidegate.view.pages.paper import Curve, Picture

MASTER = "local-cluster[3,8,1024]"
TASKS = 24
FEWER_TASKS = 8
SHARDS = 72
"""With 8 MB each they have 576 MB: all state is read through one Arrow column."""
FEWER_SHARDS = 48
"""With 32 MB each they have 1.5 GB; 72 of them would be more than one Arrow column can have. Two
for each task is the least that lets tasks be balanced."""
STATE_KB = (32.0, 1024.0, 8192.0)
LARGEST_KB = 32_768.0
ROW_MS = 10.0
"""A batch reads the state of its tuples' keys. With 1 ms it would read all state every time, and
hide what moves cost."""
OFTEN, SELDOM = 16.0, 2.0
SECONDS, SECONDS_LARGEST, SECONDS_SELDOM, QUICK_SECONDS = 11.25, 22.5, 30.0, 6.0
LEAST_BATCHES = 6
"""With 32 MB a batch takes three seconds or more: it reads and writes a hundred megabytes of
state."""
LEAST_OF_SMALL = 0.8
"""Throughput with the largest state over that with the smallest."""
LEAST_MOVED = 1.0
"""State that moves between two shuffles, over that of one shard. Without it, the throughput with
large state would say nothing about moves."""


@dataclass(frozen=True, slots=True)
class Sized:
    """One run."""

    state_kb: float
    omega: float
    tasks: int
    shards: int = SHARDS


Found = Mapping[Sized, WorkDone]
LARGEST = Sized(LARGEST_KB, OFTEN, TASKS, FEWER_SHARDS)
BESIDE_LARGEST = Sized(STATE_KB[0], OFTEN, TASKS, FEWER_SHARDS)
"""The largest state, and the smallest in as many shards."""


def points(*, quick: bool) -> list[Sized]:
    """All sizes under frequent shuffles; the smallest and the largest under seldom ones."""
    ends = (STATE_KB[0], STATE_KB[-1])
    if quick:
        return [Sized(state_kb, OFTEN, TASKS) for state_kb in ends]
    return [
        *(Sized(state_kb, OFTEN, TASKS) for state_kb in STATE_KB),
        *(Sized(state_kb, SELDOM, TASKS) for state_kb in ends),
        BESIDE_LARGEST,
        LARGEST,
        # These last: with fewer cores the control loop lets the other executors go.
        *(Sized(state_kb, OFTEN, FEWER_TASKS) for state_kb in STATE_KB),
    ]


def seconds_of(one: Sized, *, quick: bool) -> float:
    """Whole periods between two shuffles."""
    if quick:
        return QUICK_SECONDS
    if one in (LARGEST, BESIDE_LARGEST):
        return SECONDS_LARGEST
    return SECONDS if one.omega == OFTEN else SECONDS_SELDOM


def run(asked: Asked) -> Findings:
    """Measure up to 24 tasks, and simulate 256 cores."""
    found: dict[Sized, WorkDone] = {}
    with spark_on(MASTER) as spark:
        wanted = points(quick=asked.quick)
        asked.progress.expect(sum(seconds_of(one, quick=asked.quick) for one in wanted))
        for one in wanted:
            asked.progress.step(_title(one), seconds_of(one, quick=asked.quick))
            found[one] = done = measure_throughput(
                spark,
                OURS,
                MicroOptions(
                    skew=SECOND_SKEW,
                    omega=one.omega,
                    row_ms=ROW_MS,
                    state_kb=one.state_kb,
                    shards=one.shards,
                    fill=True,
                ),
                tasks=one.tasks,
                seconds=seconds_of(one, quick=asked.quick),
                batches=LEAST_BATCHES,
                options={"cache": CACHE},
            )
            asked.say(
                f"{_title(one)}: {done.mean_rows_per_s:,.0f} rows/s, {done.moves} moves,"
                f" {done.state_bytes_per_s / 1e6:.2f} MB/s fetched"
            )
    simulated: dict[tuple[float, float], float] = {}
    shuffles, states_kb = (
        (OFTEN,) if asked.quick else (SELDOM, OFTEN),
        (*STATE_KB, LARGEST_KB),
    )
    asked.progress.expect(len(shuffles) * len(states_kb))
    for omega in shuffles:
        for state_kb in states_kb:
            asked.progress.step(f"simulating {state_kb:g} KB, omega {omega:g}")
            rate = simulate(Load(state_kb=state_kb, omega=omega), 32).throughput
            simulated[omega, state_kb] = rate
            asked.say(f"simulated, {state_kb:g} KB, omega {omega:g}: {rate:,.0f} rows/s")
    return Findings(
        compared=tuple(compared(found, simulated)),
        aims=(*aims(found), all_right(found.values())),
        pictures=(_picture(found), _simulated_picture(simulated)),
        notes=(
            f"{SHARDS} shards and {ROW_MS:g} ms a tuple instead of 8192 and 1 ms: a batch reads the"
            " state of the keys that it has tuples of, and two cores must not be busy with that.",
            f"32 MB are in {FEWER_SHARDS} shards, because all state is read through one Arrow"
            f" column of at most 2 GB. Beside them are 32 KB in {FEWER_SHARDS} shards. What a batch"
            " reads and writes of 32 MB keeps the two cores busy, whether shards move or not.",
            f"zipf {SECOND_SKEW:g}, so that shards have a reason to move on {TASKS} tasks.",
            f"{FEWER_TASKS} tasks are on one executor, as the paper's first 8 cores are on one"
            " node, so no state moves between executors.",
            "State comes from the checkpoint on the same disk, not through 1 Gbit/s.",
            "256 cores are simulated: one executor of 8192 shards at zipf 0.5, 1 ms a tuple.",
        ),
    )


def compared(found: Found, simulated: Mapping[tuple[float, float], float]) -> list[Compared]:
    """The text says that all sizes scale but 32 MB; the values are drawn only."""
    rows = []
    for one, done in found.items():
        rows.append(Compared(f"{_title(one)}: rows/s", None, round(done.mean_rows_per_s)))
        fetched = round(done.state_bytes_per_s / 1e6, 2)
        rows.append(Compared(f"{_title(one)}: state moved, MB/s", None, fetched))
    if LARGEST in found and BESIDE_LARGEST in found:
        kept = found[LARGEST].mean_rows_per_s / max(found[BESIDE_LARGEST].mean_rows_per_s, 1e-9)
        name = f"{_title(LARGEST)}: throughput over that with {BESIDE_LARGEST.state_kb:g} KB"
        rows.append(Compared(name, "does not scale", round(kept, 2)))
    for (omega, state_kb), rate in simulated.items():
        scales = "does not scale" if state_kb >= LARGEST_KB else "scales"
        name = f"{state_kb:g} KB, omega {omega:g}, 256 cores, simulated: rows/s"
        rows.append(Compared(name, scales, round(rate)))
    return rows


def aims(found: Found) -> list[Aim]:
    """Large state is to cost little throughput, while it really moves."""
    small, large = (found[Sized(kb, OFTEN, TASKS)] for kb in (STATE_KB[0], STATE_KB[-1]))
    kept = large.mean_rows_per_s / max(small.mean_rows_per_s, 1e-9)
    name = f"omega {OFTEN:g}, {TASKS} tasks"
    return [
        at_least(f"{name}: 8 MB over 32 KB", kept, LEAST_OF_SMALL),
        at_least(
            f"{name}, 8 MB: state fetched between two shuffles, in shards",
            large.state_bytes_per_s * 60.0 / OFTEN / (STATE_KB[-1] * 1024),
            LEAST_MOVED,
        ),
    ]


def _title(one: Sized) -> str:
    return f"{one.state_kb:g} KB, omega {one.omega:g}, {one.tasks} tasks, {one.shards} shards"


def _picture(found: Found) -> Picture:
    lines = []
    curves = dict.fromkeys((one.omega, one.tasks, one.shards) for one in found)
    for omega, tasks, shards in curves:
        mine = {
            f"{one.state_kb:g}": done.mean_rows_per_s
            for one, done in found.items()
            if (one.omega, one.tasks, one.shards) == (omega, tasks, shards)
        }
        name = f"omega {omega:g}, {tasks} tasks, {shards} shards"
        lines.append(Curve(name, tuple(mine), tuple(mine.values())))
    return Picture("On Spark", "KB of a shard", "rows per second", tuple(lines))


def _simulated_picture(simulated: Mapping[tuple[float, float], float]) -> Picture:
    lines = []
    for omega in dict.fromkeys(omega for omega, _ in simulated):
        mine = {f"{kb:g}": rate for (one, kb), rate in simulated.items() if one == omega}
        lines.append(Curve(f"omega {omega:g}", tuple(mine), tuple(mine.values())))
    return Picture("Simulated, 256 cores", "KB of a shard", "rows per second", tuple(lines))
