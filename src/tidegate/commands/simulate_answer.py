"""The output of `tidegate simulate`: one JSON document, or tables."""

import math
from typing import TYPE_CHECKING, Any

from rich.table import Table

from tidegate.commands.output import out, print_line, print_table
from tidegate.models.queueing.network import Network
from tidegate.units import format_share

if TYPE_CHECKING:  # scipy and numba take a second to import, which would slow down `--help`
    from tidegate.sim.queueing.arrivals import ArrivalProcess
    from tidegate.sim.queueing.statistics import ConfidenceInterval, Simulation


class Prediction:
    """What the model predicts: M/M/k when all scvs are 1, otherwise GI/G/k."""

    def __init__(self, network: Network, allocation: tuple[int, ...]) -> None:
        from tidegate.models.queueing.stations import Queues

        poisson = all(each.arrival_scv == each.service_scv == 1.0 for each in network.operators)
        self.model = "mmk" if poisson else "gigk"
        self.title = "M/M/k" if poisson else "GI/G/k"
        queues = Queues.of_network(network, "mmk" if poisson else "gigk")
        self.sojourn_s = [float(each) for each in queues.latency(allocation)]
        self.latency_s = float(queues.network_latency(allocation))


def latency_by_step(found: "Simulation", coming: "ArrivalProcess") -> list[dict[str, Any]]:
    """Mean latency of the tuples that arrived in each step of the rates."""
    if not coming.rates:
        return []
    import numpy as np

    steps = len(coming.rates)
    which = np.minimum((found.arrived_s / coming.step_s).astype(np.int64), steps - 1)
    counts = np.bincount(which, minlength=steps)
    sums = np.bincount(which, weights=found.latencies_s, minlength=steps)
    return [
        {"rate": rate, "completed": int(count), "latency_ms": _ms(total / count if count else None)}
        for rate, count, total in zip(coming.rates, counts, sums, strict=True)
    ]


def _ms(seconds: float | None) -> float | None:
    """Milliseconds for JSON, which has no infinity."""
    return _finite(None if seconds is None else 1e3 * seconds)


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def document(
    found: "Simulation",
    prediction: Prediction | None,
    unstable: list[str],
    steps: list[dict[str, Any]],
) -> dict[str, Any]:
    """Everything that was measured, and what the model predicts."""
    predicted_s = prediction.sojourn_s if prediction else [math.nan] * len(found.stations)
    answer: dict[str, Any] = {
        "latency_ms": _ms(found.latency.mean),
        "latency_half_width_ms": _ms(found.latency.half_width),
        "p50_ms": _ms(found.quantile_s(0.5)),
        "p95_ms": _ms(found.quantile_s(0.95)),
        "p99_ms": _ms(found.quantile_s(0.99)),
        "completed": found.completed,
        "visit_sum_ms": _ms(found.visit_sum.mean),
        "visit_sum_half_width_ms": _ms(found.visit_sum.half_width),
        "predicted_visit_sum_ms": _ms(prediction.latency_s if prediction else None),
        "model": prediction.model if prediction else None,
        "confidence": found.latency.confidence,
        "allocation": dict(zip(found.network.names, found.allocation, strict=True)),
        "unstable": unstable,
        "seconds": found.seconds,
        "seed": found.seed,
        "visits": found.visits,
        "stations": [
            {
                "operator": station.name,
                "cores": station.cores,
                "arrivals": station.arrivals,
                "arrival_rate": station.arrival_rate,
                "utilisation": station.utilisation,
                "wait_ms": _ms(station.mean_wait_s),
                "sojourn_ms": _ms(station.mean_sojourn_s),
                "predicted_sojourn_ms": _ms(sojourn_s),
                "queue": station.mean_queue,
                "longest_queue": station.longest_queue,
                "arrival_scv": _finite(station.arrival_scv),
                "service_scv": _finite(station.service_scv),
            }
            for station, sojourn_s in zip(found.stations, predicted_s, strict=True)
        ],
    }
    if steps:
        answer["steps"] = steps
    return answer


def print_tables(
    found: "Simulation", prediction: Prediction | None, steps: list[dict[str, Any]]
) -> None:
    """Print the stations, the steps if there are any, and the latencies."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("operator", no_wrap=True)
    model = prediction.title if prediction else "model"
    headings = ("cores", "rows/s", "busy", "wait, ms", "wait and work, ms", f"{model}, ms")
    for title in (*headings, "rows waiting", "scv of gaps", "scv of work"):
        table.add_column(title, justify="right")
    predicted_s = prediction.sojourn_s if prediction else [math.nan] * len(found.stations)
    for station, sojourn_s in zip(found.stations, predicted_s, strict=True):
        table.add_row(
            station.name,
            str(station.cores),
            f"{station.arrival_rate:.3g}",
            format_share(station.utilisation),
            *(_shown(value) for value in (station.mean_wait_s, station.mean_sojourn_s, sojourn_s)),
            f"{station.mean_queue:.3g}",
            f"{station.arrival_scv:.3g}",
            f"{station.service_scv:.3g}",
        )
    print_table(table)
    if steps:
        _print_steps(steps)
    lines = [
        "",
        f"latency    {_interval(found.latency)} ms, until all that follows from a row is done;"
        f" 95 % of rows within {_shown(found.quantile_s(0.95))} ms, 99 % within"
        f" {_shown(found.quantile_s(0.99))} ms",
        f"visit sum  {_interval(found.visit_sum)} ms, added up over all operators"
        + (f"; {prediction.title} predicts {_shown(prediction.latency_s)}" if prediction else ""),
        f"{found.completed:,} rows in {found.seconds:,.0f} simulated seconds, seed {found.seed};"
        f" the mean is within +- with {format_share(found.latency.confidence)} certainty;"
        " scv: 0 is regular, 1 random",
    ]
    for line in lines:
        print_line(line)


def _print_steps(steps: list[dict[str, Any]]) -> None:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("step", "rows/s", "rows", "latency, ms"):
        table.add_column(title, justify="right")
    for number, step in enumerate(steps, start=1):
        latency_ms = step["latency_ms"]
        table.add_row(
            str(number),
            f"{step['rate']:g}",
            f"{step['completed']:,}",
            "-" if latency_ms is None else f"{latency_ms:,.1f}",
        )
    out.print()
    print_table(table)


def _interval(found: "ConfidenceInterval") -> str:
    return f"{_shown(found.mean)} +- {_shown(found.half_width)}"


def _shown(seconds: float) -> str:
    """Milliseconds for a table; a dash for an unbounded queue."""
    if not math.isfinite(seconds):
        return "-"
    return f"{1e3 * seconds:.3g}" if seconds < 0.1 else f"{1e3 * seconds:,.0f}"
