"""The answer of `tidegate whatif`: the real run, its simulation, and what was asked for."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from tidegate.commands.output import print_line, print_table
from tidegate.control.assembly import Assembly
from tidegate.control.record import Record
from tidegate.control.replay import as_it_began
from tidegate.errors import AskedWrongly
from tidegate.progress import Progress
from tidegate.sim.microbatch.oracle import Oracle
from tidegate.sim.microbatch.pipeline import simulate
from tidegate.sim.microbatch.recorded import RecordedWorld, recorded_world
from tidegate.units import format_duration
from tidegate.view.figures import milliseconds, rounded
from tidegate.view.judge import Statistic
from tidegate.view.summary import summarise

_SEEDS = 8
_SIMULATED_S = 6 * 3600.0
"""Seconds of load to simulate in all, which bounds the number of seeds of a long run."""
_STATISTICS: dict[int | None, Statistic] = {None: "mean", 50: "p50", 95: "p95", 99: "p99"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One run or the mean of several simulated ones."""

    within: float
    """The share of the judged seconds within the target."""
    core_seconds: float
    changes: float
    mean_s: float | None
    """None if no row was done in the judged time."""
    p95_s: float | None
    spread: tuple[float, float] | None = None
    """The lowest and the highest core-seconds among the simulated runs; None for a real run."""

    def document(self) -> dict[str, Any]:
        """For JSON."""
        spread = None if self.spread is None else [round(one, 1) for one in self.spread]
        return {
            "within_target": rounded(self.within, 4),
            "core_seconds": round(self.core_seconds, 1),
            "core_hours": round(self.core_seconds / 3600.0, 3),
            "core_seconds_spread": spread,
            "changes": round(self.changes, 1),
            "mean_ms": milliseconds(self.mean_s),
            "p95_ms": milliseconds(self.p95_s),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What happened, what the simulator makes of it, and what was asked for."""

    real: Case
    again: Case
    """The run as it was, simulated."""
    asked: Case | None
    """None if nothing other than the run as it was is asked for."""
    oracle: Oracle
    """For the run as it was."""
    asked_oracle: Oracle | None
    seconds: float
    title: str
    """What was asked for, in words."""

    @property
    def off_points(self) -> float:
        """Simulated minus real share of the seconds within target, in percentage points."""
        return _off_points(self.real, self.again)

    @property
    def off_cost(self) -> float:
        """Simulated over real core-seconds, minus 1."""
        return _off_cost(self.real, self.again)

    def document(self) -> dict[str, Any]:
        """For JSON: what was asked for, the real run, and how far its simulation is off.

        If nothing other than the run as it was is asked for, its simulation is the answer.
        """
        asked = self.again if self.asked is None else self.asked
        return {
            "asked": self.title,
            "seconds": round(self.seconds, 1),
            **asked.document(),
            **_oracle_document(self.asked_oracle or self.oracle),
            "real": {**self.real.document(), **_oracle_document(self.oracle)},
            "self_check": {
                **self.again.document(),
                "within_target_error": round(self.off_points / 100.0, 4),
                "core_seconds_error": round(self.off_cost, 4),
            },
        }


def answer(
    records: Sequence[Record],
    as_it_was: Assembly,
    asked: Assembly,
    *,
    load: float = 1.0,
    warm_up_s: float = 0.0,
    seeds: int | None = None,
    progress: Progress | None = None,
) -> Answer:
    """Simulate a run as it was, which tells how far off that is, and then as it is asked for."""
    progress = progress or Progress()
    real = _case(records, warm_up_s, as_it_was)
    recorded = recorded_world(records)
    seconds = recorded.world.seconds
    count = seeds or max(1, min(_SEEDS, round(_SIMULATED_S / max(seconds, 1.0))))
    changed = asked != as_it_was or load != 1.0
    progress.expect(count * (2 if changed else 1))
    again = _simulated(recorded, records[0], as_it_was, warm_up_s, count, "as it was", progress)
    found, least = None, None
    title = _words(as_it_was, asked, load)
    if changed:
        other = recorded.changed(load=load, cores=_first_cores(recorded.world.cores, asked))
        found = _simulated(other, records[0], asked, warm_up_s, count, f"with {title}", progress)
        least = other.oracle(asked.target, asked.bounds, asked.cores_per_executor)
    return Answer(
        real=real,
        again=again,
        asked=found,
        oracle=recorded.oracle(as_it_was.target, as_it_was.bounds, as_it_was.cores_per_executor),
        asked_oracle=least,
        seconds=seconds,
        title=title,
    )


def _first_cores(recorded: int, asked: Assembly) -> int:
    """The cores to begin with: those of the run, as far as the bounds allow, in whole executors."""
    step = asked.cores_per_executor
    least = -(-asked.bounds.least // step) * step
    return max(asked.bounds.clamp(recorded) // step * step, least)


def _simulated(
    recorded: RecordedWorld,
    first: Record,
    assembly: Assembly,
    warm_up_s: float,
    seeds: int,
    what: str,
    progress: Progress,
) -> Case:
    cases = []
    for seed in range(1, seeds + 1):
        progress.step(f"simulating the run {what}, {seed} of {seeds}")
        run = simulate(
            recorded.changed(seed=seed).world,
            as_it_began(first, assembly),
            on_share=progress.within,
        )
        cases.append(_case(run.records, warm_up_s, assembly))
    used = [one.core_seconds for one in cases]
    return Case(
        within=_mean([one.within for one in cases]),
        core_seconds=_mean(used),
        changes=_mean([one.changes for one in cases]),
        mean_s=_mean_of_known([one.mean_s for one in cases]),
        p95_s=_mean_of_known([one.p95_s for one in cases]),
        spread=(min(used), max(used)),
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _mean_of_known(values: Sequence[float | None]) -> float | None:
    known = [one for one in values if one is not None]
    return _mean(known) if known else None


def _off_points(real: Case, again: Case) -> float:
    return 100.0 * (again.within - real.within)


def _off_cost(real: Case, again: Case) -> float:
    return again.core_seconds / max(real.core_seconds, 1e-9) - 1.0


def _trust(real: Case, again: Case) -> str:
    return (
        "The simulation of the run as it was is off by"
        f" {_off_points(real, again):+.1f} percentage points of the time within the target and by"
        f" {100 * _off_cost(real, again):+.1f} % of the core-seconds. Expect the prediction to be"
        " off by as much."
    )


def _case(records: Sequence[Record], warm_up_s: float, assembly: Assembly) -> Case:
    found = summarise(
        records, warm_up_s=warm_up_s, statistic=_STATISTICS[assembly.target.percentile]
    )
    if found.within_target is None:
        raise AskedWrongly(
            f"nothing of this run can be judged: it has {found.seconds:,.0f} s, of which the first"
            f" {format_duration(warm_up_s)} do not count, and no row was there in the others; give"
            " a shorter --warm-up, such as 0s, or ask about a longer run"
        )
    return Case(
        within=found.within_target,
        core_seconds=found.core_seconds,
        changes=float(found.changes),
        mean_s=found.mean_s,
        p95_s=found.p95_s,
    )


def _words(before: Assembly, after: Assembly, load: float) -> str:
    parts = []
    if after.target != before.target:
        parts.append(f"a target of {after.target}")
    if after.bounds != before.bounds:
        parts.append(f"{after.bounds.least} to {after.bounds.most} cores")
    if after.policy != before.policy:
        parts.append(f"policy {after.policy}")
    if after.capacity != before.capacity:
        parts.append("a measured capacity")
    if before.limits.dry_run and not after.limits.dry_run:
        parts.append("decisions acted on, where the run was dry")
    if load != 1.0:
        parts.append(f"{load:g} times the load")
    return ", ".join(parts) or "nothing changed"


def _oracle_document(found: Oracle) -> dict[str, float]:
    return {
        "oracle_core_seconds": round(found.core_seconds, 1),
        "oracle_within_target": round(found.within, 4),
        "oracle_estimated": found.estimated,
    }


def print_answer(found: Answer) -> None:
    """Print how far to trust the answer, and the answer as a table."""
    print_line(_trust(found.real, found.again))
    columns: list[tuple[str, Case | None, Oracle]] = [
        ("as it was", found.real, found.oracle),
        ("simulated", found.again, found.oracle),
        (_oracle_name("oracle", found.oracle), None, found.oracle),
    ]
    if found.asked is not None and found.asked_oracle is not None:
        columns.append(("what if", found.asked, found.asked_oracle))
        columns.append((_oracle_name("its oracle", found.asked_oracle), None, found.asked_oracle))
    title = f"{format_duration(found.seconds)} of load; what if: {found.title}"
    table = Table(title=title, title_justify="left")
    table.add_column("what")
    for heading, _, _ in columns:
        table.add_column(heading, justify="right")
    cells = [_cells(case, least) for _, case, least in columns]
    for label, *values in zip(_LABELS, *cells, strict=True):
        table.add_row(label, *values)
    print_table(table)
    print_line(
        "An oracle knows the future: it has the fewest cores with which every micro-batch is on"
        " time."
    )


def _oracle_name(name: str, least: Oracle) -> str:
    return f"{name}, about" if least.estimated else name


_LABELS = (
    "time within the target",
    "core-seconds",
    "core-hours",
    "times the oracle's",
    "changes of cores or tasks",
    "mean latency",
    "95 % of rows within",
)


def _cells(case: Case | None, least: Oracle) -> list[str]:
    if case is None:
        cost = least.core_seconds
        shown = [f"{100 * least.within:.1f} %", f"{cost:,.0f}", f"{cost / 3600.0:,.3g}", "1.00"]
        return shown + [""] * (len(_LABELS) - len(shown))
    of = case.core_seconds / least.core_seconds if least.core_seconds > 0.0 else math.nan
    return [
        f"{100 * case.within:.1f} %",
        f"{case.core_seconds:,.0f}",
        f"{case.core_seconds / 3600.0:,.3g}",
        f"{of:.2f}",
        f"{case.changes:.0f}",
        *("-" if one is None else format_duration(one) for one in (case.mean_s, case.p95_s)),
    ]
