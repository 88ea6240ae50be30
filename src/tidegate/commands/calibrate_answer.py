"""What a calibration has found, for people and as one JSON document."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.table import Table

from tidegate.apps.capacity.calibration import CapacityCalibration
from tidegate.commands.output import print_json, print_line, print_table
from tidegate.models.capacity.fitted import PredictedThroughput
from tidegate.units import format_duration


def tell(
    found: CapacityCalibration, target_s: float | None, notes: Sequence[str], file: Path, json: bool
) -> None:
    """Print the measurements, the predictions, and the checks."""
    if json:
        print_json(document(found, target_s, notes, file))
    else:
        _print(found, target_s, notes, file)


def document(
    found: CapacityCalibration, target_s: float | None, notes: Sequence[str], file: Path
) -> dict[str, Any]:
    """Everything that was found, as plain values."""
    plan, fit, measured = found.plan, found.fit(), found.measured
    return {
        "name": found.name,
        "stretched": found.stretched,
        "interrupted": found.interrupted,
        "notes": list(notes),
        "rule": asdict(plan.rule),
        "repeats": plan.repeats,
        "batch_s": plan.batch_s,
        "measured": [{**asdict(one), "samples": list(one.samples)} for one in found.runs],
        "fixed_s": measured.fixed_s,
        "per_task_s": measured.per_task_s,
        "curve": fit.curve,
        "weights": list(fit.weights),
        "reason": fit.reason,
        "errors": dict(fit.errors),
        "target_ms": None if target_s is None else 1e3 * target_s,
        "predicted": [
            {**asdict(one), "measured": found.rates.get(one.cores), "within_target": within}
            for one, within in _predicted(found, target_s)
        ],
        "checks": [
            {
                "cores": one.cores,
                "measured": one.measured,
                "predicted": one.predicted.rows_per_s,
                "low": one.predicted.low,
                "high": one.predicted.high,
                "error": one.error,
            }
            for one in found.checks
        ],
        "file": str(file),
    }


def _predicted(
    found: CapacityCalibration, target_s: float | None
) -> list[tuple[PredictedThroughput, float | None]]:
    """The prediction of each number of cores, for ever and within the target.

    The second is None where batches take longer than the target allows even without rows.
    """
    counts = range(1, found.plan.predicted + 1)
    ever = found.fit().predict(counts)
    measured = found.measured
    if target_s is None or not measured.within(target_s):
        return [(one, None) for one in ever]
    within = found.fit(target_s).predict(counts)
    return [
        (one, other.rows_per_s if measured.least_latency_s(one.cores) <= target_s else None)
        for one, other in zip(ever, within, strict=True)
    ]


def _print(
    found: CapacityCalibration, target_s: float | None, notes: Sequence[str], file: Path
) -> None:
    fit, measured = found.fit(), found.measured
    within = "" if target_s is None else f"predicted within {format_duration(target_s)}"
    table = Table(title=f"{found.name}: rows per second", title_justify="left")
    for column in ("cores", "measured", "predicted", "95 % between", "standard error", within):
        if column:
            table.add_column(column, justify="right")
    used = {one.cores: one.use for one in found.runs}
    for one, bounded in _predicted(found, target_s):
        rate = found.rates.get(one.cores)
        marked = "" if used.get(one.cores, "fit") == "fit" else f" ({used[one.cores]})"
        table.add_row(
            str(one.cores),
            "" if rate is None else f"{rate:,.0f}{marked}",
            f"{one.rows_per_s:,.0f}",
            f"{one.low:,.0f} - {one.high:,.0f}",
            f"{one.standard_error:,.0f}",
            *([] if target_s is None else ["" if bounded is None else f"{bounded:,.0f}"]),
        )
    print_table(table)
    _line(f"{fit.curve or 'Bayesian model'} ({fit.reason})")
    _line(
        f"measured with batches of about {format_duration(found.plan.batch_s)}, of which"
        f" {1e3 * measured.fixed_s:.0f} ms and {1e3 * measured.per_task_s:.1f} ms for each core are"
        " not work on rows"
    )
    for check in found.checks:
        inside = check.predicted.low <= check.measured <= check.predicted.high
        _line(
            f"check at {check.cores} cores: {check.predicted.rows_per_s:,.0f} predicted,"
            f" {check.measured:,.0f} measured, off by {check.error:+.1%}"
            + ("" if inside else ", outside of the interval")
        )
    open_ended = sorted({one.cores for one in found.runs if not one.converged})
    if open_ended:
        _line(f"throughput never got steady on {', '.join(map(str, open_ended))} cores")
    for note in notes:
        _line(note)
    _line(f"capacity file: {file}")


def _line(text: str) -> None:
    print_line(text)
