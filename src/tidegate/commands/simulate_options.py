"""The options of `tidegate simulate`, and how to read an allocation, arrivals and services."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.errors import AskedWrongly
from tidegate.models.queueing.network import Network

if TYPE_CHECKING:  # scipy and numba take a second to import, which would slow down `--help`
    from tidegate.sim.queueing.arrivals import ArrivalProcess
    from tidegate.sim.queueing.distributions import Distribution

_KINDS = "deterministic, exponential, uniform, lognormal or hyperexponential"

File = Annotated[
    Path, typer.Argument(help="The operators and their rates, as `tidegate plan` reads them.")
]
Allocation = Annotated[
    str, typer.Option("--allocation", help="Cores of every operator: extract=10,match=11.")
]
Seconds = Annotated[
    float | None,
    typer.Option(
        "--seconds", help="Seconds to simulate, after the warm-up. Default: about 2 million rows."
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="The same seed gives the same result.")]
WarmUp = Annotated[
    float | None,
    typer.Option("--warm-up", help="Seconds simulated first and not counted. Default: a tenth."),
]
ArrivalKind = Annotated[
    str | None,
    typer.Option(
        "--arrivals",
        help=f"How irregularly rows come, KIND or KIND:SCV: {_KINDS}. SCV is the squared"
        " coefficient of variation: 0 is regular, 1 random.",
    ),
]
ServiceKind = Annotated[
    str | None,
    typer.Option(
        "--services", help="How irregular the time per row is, at every operator: KIND or KIND:SCV."
    ),
]
Bulk = Annotated[int, typer.Option("--bulk", help="Rows that come in together.")]
EmissionName = Annotated[
    str,
    typer.Option(
        "--emission",
        help="How many rows follow from one, where a ratio is not a whole number: routed,"
        " independent, even or geometric.",
    ),
]
Rates = Annotated[
    str | None,
    typer.Option("--rates", help="Successive rates instead of the file's: 50,100,150,100,50."),
]
Step = Annotated[float, typer.Option("--step", help="Seconds that each of the --rates lasts.")]


def parse_allocation(text: str) -> dict[str, int]:
    """Parse `extract=10,match=11` into cores by operator."""
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
                f"operator '{name}' needs a whole number of cores of at least 1, not '{number}'"
            )
    return cores


def parse_arrivals(
    network: Network, kind: str | None, bulk: int, rates: str | None, step_s: float
) -> "ArrivalProcess":
    """The external arrivals: distribution of the gaps, size of a bulk, one rate or several."""
    from tidegate.sim.queueing.arrivals import ArrivalProcess, source_gaps

    return ArrivalProcess(
        gaps=source_gaps(network) if kind is None else parse_distribution(kind),
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


def parse_distribution(text: str) -> "Distribution":
    """`lognormal:2.5` as a distribution; without an scv, the natural one of its kind."""
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
