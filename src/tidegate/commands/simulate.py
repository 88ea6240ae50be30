"""`tidegate simulate`: what an allocation gives, by discrete events, beside what the model says."""

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate.commands.output import Json, err, out, print_json
from tidegate.errors import AskedWrongly
from tidegate.models.queueing.network import SOURCE, Network

if TYPE_CHECKING:  # scipy and numba take a second to import; `tidegate --help` should not
    from tidegate.sim.queueing.distributions import Distribution
    from tidegate.sim.queueing.network import Arrivals, Simulation
    from tidegate.sim.queueing.statistics import ConfidenceInterval

VISITS_BY_DEFAULT = 2_000_000
"""How long a run is unless told: about half a second of work, whatever the rates are."""
TUPLES_AT_LEAST = 10_000

_KINDS = "deterministic, exponential, uniform, lognormal or hyperexponential"


def simulate(
    file: Annotated[Path, typer.Argument(help="The network, as `tidegate plan` reads it.")],
    allocation: Annotated[
        str, typer.Option("--allocation", help="Cores of every operator: extract=10,match=11.")
    ],
    seconds: Annotated[
        float | None,
        typer.Option(
            "--seconds", help="Simulated seconds after the warm-up. Default: ~2e6 visits."
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Same seed, same answer.")] = 0,
    warm_up: Annotated[
        float | None,
        typer.Option("--warm-up", help="Seconds simulated first, not counted. Default: a tenth."),
    ] = None,
    arrivals: Annotated[
        str | None,
        typer.Option(
            "--arrivals", help=f"Times between external arrivals, KIND or KIND:SCV: {_KINDS}."
        ),
    ] = None,
    services: Annotated[
        str | None,
        typer.Option("--services", help="Service times of every operator, KIND or KIND:SCV."),
    ] = None,
    bulk: Annotated[int, typer.Option("--bulk", help="External tuples that arrive together.")] = 1,
    emission: Annotated[
        str,
        typer.Option(
            "--emission",
            help="How ratios become whole tuples: routed, independent, even or geometric.",
        ),
    ] = "routed",
    rates: Annotated[
        str | None,
        typer.Option("--rates", help="Rates in turn, in place of the file's: 50,100,150,100,50."),
    ] = None,
    step: Annotated[float, typer.Option("--step", help="Seconds of each of --rates.")] = 60.0,
    as_json: Json = False,
) -> None:
    """Simulate a network with an allocation, and compare with the queueing model.

    The latency is the time until every tuple derived from an external one is processed. The sum
    over visits is what the model (DRS eq. 4) predicts; the two differ where a tuple branches.
    """
    from tidegate.commands.networkfile import read_network
    from tidegate.sim.queueing import network as simulator
    from tidegate.sim.queueing.emission import EMISSIONS, emission_code

    network = read_network(file)
    cores = parse_allocation(allocation)
    vector = simulator.allocation_vector(network, cores)
    way = EMISSIONS[emission_code(emission)]
    coming = _arrivals(network, arrivals, bulk, rates, step)
    if seconds is None:
        seconds = step * len(coming.rates) if coming.rates else _seconds_by_default(network)
    unstable = {} if coming.rates else simulator.unstable_stations(network, vector)
    for name, fewest in unstable.items():
        err.print(
            f"[yellow]tidegate:[/yellow] operator '{name}' cannot keep up with {cores[name]}"
            f" cores (it needs {fewest}), so its queue and the latency grow for as long as the"
            " simulation runs",
            highlight=False,
            soft_wrap=True,
        )
    each = _parse_distribution(services) if services is not None else None
    network = _as_simulated(network, coming, each)
    with _progress() as told:
        task = told.add_task("simulating", total=1.0)
        found = simulator.simulate(
            network,
            cores,
            seconds=seconds,
            seed=seed,
            warm_up_s=warm_up,
            arrivals=coming,
            services={} if each is None else dict.fromkeys(network.names, each),
            emission=way,
            progress=lambda share: told.update(task, completed=share),
        )
    steps = _latency_by_step(found, coming)
    prediction = None if coming.rates else _Prediction(network, vector)
    if as_json:
        print_json(_document(found, prediction, sorted(unstable), steps))
    else:
        _print_tables(found, prediction, steps)


def parse_allocation(text: str) -> dict[str, int]:
    """`extract=10,match=11` as cores by operator."""
    cores: dict[str, int] = {}
    for part in text.split(","):
        name, equals, number = (piece.strip() for piece in part.partition("="))
        if not (name and equals):
            raise AskedWrongly(
                f"'{part.strip()}' in the allocation is not OPERATOR=CORES; write it as"
                " extract=10,match=11"
            )
        if name in cores:
            raise AskedWrongly(f"the allocation names operator '{name}' twice; name it once")
        try:
            cores[name] = int(number)
        except ValueError:
            cores[name] = 0
        if cores[name] < 1:
            raise AskedWrongly(
                f"operator '{name}' needs a whole number of cores from 1 upwards, not '{number}'"
            )
    return cores


def _as_simulated(network: Network, coming: "Arrivals", services: "Distribution | None") -> Network:
    """The network with the scvs that are simulated, so that the model is told the same."""
    fed = {edge.target for edge in network.edges if edge.origin == SOURCE}
    operators = tuple(
        replace(
            each,
            arrival_scv=coming.gaps.scv if each.name in fed else each.arrival_scv,
            service_scv=each.service_scv if services is None else services.scv,
        )
        for each in network.operators
    )
    return replace(network, operators=operators)


class _Prediction:
    """What the model of the file's scvs says: M/M/k when they are all 1, else GI/G/k."""

    def __init__(self, network: Network, allocation: tuple[int, ...]) -> None:
        from tidegate.models.queueing.stations import Queues

        poisson = all(each.arrival_scv == each.service_scv == 1.0 for each in network.operators)
        self.model = "mmk" if poisson else "gigk"
        self.title = "M/M/k" if poisson else "GI/G/k"
        queues = Queues.of_network(network, "mmk" if poisson else "gigk")
        self.sojourn_s = [float(each) for each in queues.latency(allocation)]
        self.latency_s = float(queues.network_latency(allocation))


def _seconds_by_default(network: Network) -> float:
    from tidegate.models.queueing.traffic import visit_ratios

    tuples = max(TUPLES_AT_LEAST, VISITS_BY_DEFAULT / max(float(visit_ratios(network).sum()), 1.0))
    return tuples / network.rate


def _arrivals(
    network: Network, kind: str | None, bulk: int, rates: str | None, step_s: float
) -> "Arrivals":
    from tidegate.sim.queueing.network import Arrivals, source_gaps

    return Arrivals(
        gaps=source_gaps(network) if kind is None else _parse_distribution(kind),
        bulk=bulk,
        rates=() if rates is None else _parse_rates(rates),
        step_s=step_s,
    )


def _parse_rates(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise AskedWrongly(
            f"'{text}' is not a list of rates; write numbers with commas, such as 50,100,150"
        ) from None


def _parse_distribution(text: str) -> "Distribution":
    from tidegate.sim.queueing.distributions import distribution, natural

    kind, colon, number = text.partition(":")
    if not colon:
        return natural(kind)
    try:
        scv = float(number)
    except ValueError:
        raise AskedWrongly(
            f"'{number}' in '{text}' is not an scv; write KIND:SCV, such as lognormal:2.5"
        ) from None
    return distribution(scv, kind)


def _progress() -> Any:
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeRemainingColumn(),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    )


def _latency_by_step(found: "Simulation", coming: "Arrivals") -> list[dict[str, Any]]:
    """Mean latency of what arrived in each step of changing rates."""
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
    """Milliseconds for JSON, which knows no infinity."""
    return _finite(None if seconds is None else 1e3 * seconds)


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def _document(
    found: "Simulation",
    prediction: _Prediction | None,
    unstable: list[str],
    steps: list[dict[str, Any]],
) -> dict[str, Any]:
    predicted_s = prediction.sojourn_s if prediction else [math.nan] * len(found.stations)
    document: dict[str, Any] = {
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
        document["steps"] = steps
    return document


def _print_tables(
    found: "Simulation", prediction: _Prediction | None, steps: list[dict[str, Any]]
) -> None:
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("operator", no_wrap=True)
    model = prediction.title if prediction else "model"
    for title in ("cores", "rate/s", "busy", "wait ms", "visit ms", model, "queue", "scv a, s"):
        table.add_column(title, justify="right", no_wrap=True)
    predicted_s = prediction.sojourn_s if prediction else [math.nan] * len(found.stations)
    for station, sojourn_s in zip(found.stations, predicted_s, strict=True):
        table.add_row(
            station.name,
            str(station.cores),
            f"{station.arrival_rate:.4g}",
            f"{station.utilisation:.1%}",
            *(_shown(value) for value in (station.mean_wait_s, station.mean_sojourn_s, sojourn_s)),
            f"{station.mean_queue:.3g}",
            f"{station.arrival_scv:.3g}, {station.service_scv:.3g}",
        )
    out.print(table)
    if steps:
        _print_steps(steps)
    lines = [
        "",
        f"latency    {_interval(found.latency)} ms, until every derived tuple is done;"
        f" p95 {_shown(found.quantile_s(0.95))}, p99 {_shown(found.quantile_s(0.99))}",
        f"visit sum  {_interval(found.visit_sum)} ms, over all visits"
        + (f"; {prediction.title} predicts {_shown(prediction.latency_s)}" if prediction else ""),
        f"{found.completed:,} tuples in {found.seconds:.6g} simulated seconds, seed {found.seed};"
        f" +- is the {found.latency.confidence:.0%} interval of the mean",
    ]
    for line in lines:
        out.print(line, highlight=False, soft_wrap=True)


def _print_steps(steps: list[dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("step", "rate/s", "tuples", "latency ms"):
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
    out.print(table)


def _interval(estimate: "ConfidenceInterval") -> str:
    return f"{_shown(estimate.mean)} +- {_shown(estimate.half_width)}"


def _shown(seconds: float) -> str:
    """Milliseconds for people; a queue without bound has none."""
    if not math.isfinite(seconds):
        return "-"
    return f"{1e3 * seconds:,.1f}" if seconds < 100.0 else f"{1e3 * seconds:,.0f}"
