"""`tidegate simulate`: the latency of an allocation, simulated and as the model predicts it."""

from dataclasses import replace
from typing import TYPE_CHECKING

from tidegate.commands import simulate_options as given
from tidegate.commands.output import Json, err, print_json, progress
from tidegate.commands.simulate_answer import Prediction, document, latency_by_step, print_tables
from tidegate.models.queueing.network import SOURCE, Network

if TYPE_CHECKING:  # scipy and numba take a second to import, which would slow down `--help`
    from tidegate.sim.queueing.arrivals import ArrivalProcess
    from tidegate.sim.queueing.distributions import Distribution

VISITS_BY_DEFAULT = 2_000_000
"""The default length of a run: about half a second of computing, whatever the rates are."""
TUPLES_AT_LEAST = 10_000


def simulate(
    file: given.File,
    allocation: given.Allocation,
    seconds: given.Seconds = None,
    seed: given.Seed = 0,
    warm_up: given.WarmUp = None,
    arrivals: given.ArrivalKind = None,
    services: given.ServiceKind = None,
    bulk: given.Bulk = 1,
    emission: given.EmissionName = "routed",
    rates: given.Rates = None,
    step: given.Step = 60.0,
    as_json: Json = False,
) -> None:
    """Simulate row by row how long rows take through a pipeline with given cores.

    The file is that of tidegate plan, which computes the same by a formula; the table shows both.
    The latency of a row lasts until everything derived from it is processed. The visit sum adds up
    the time at all operators, which is what the formula predicts; the two differ where one row
    becomes several.
    """
    from tidegate.commands.networkfile import read_network
    from tidegate.sim.queueing import network as simulator
    from tidegate.sim.queueing.allocation import allocation_vector, unstable_stations
    from tidegate.sim.queueing.emission import EMISSIONS, emission_code

    network = read_network(file)
    cores = given.parse_allocation(allocation)
    vector = allocation_vector(network, cores)
    way = EMISSIONS[emission_code(emission)]
    coming = given.parse_arrivals(network, arrivals, bulk, rates, step)
    if seconds is None:
        seconds = step * len(coming.rates) if coming.rates else _seconds_by_default(network)
    unstable = {} if coming.rates else unstable_stations(network, vector)
    _warn_of(unstable, cores)
    each = given.parse_distribution(services) if services is not None else None
    network = _as_simulated(network, coming, each)
    with progress("simulate") as told:
        told.progress.expect(1.0)
        told.progress.doing(f"{seconds:,.0f} s of the network's time")
        found = simulator.simulate(
            network,
            cores,
            seconds=seconds,
            seed=seed,
            warm_up_s=warm_up,
            arrivals=coming,
            services={} if each is None else dict.fromkeys(network.names, each),
            emission=way,
            progress=told.progress.reached,
        )
    steps = latency_by_step(found, coming)
    prediction = None if coming.rates else Prediction(network, vector)
    if as_json:
        print_json(document(found, prediction, sorted(unstable), steps))
    else:
        print_tables(found, prediction, steps)


def _warn_of(unstable: dict[str, int], cores: dict[str, int]) -> None:
    for name, fewest in unstable.items():
        err.print(
            f"[yellow]tidegate:[/yellow] operator '{name}' cannot keep up with {cores[name]}"
            f" cores (it needs {fewest}), so its queue and the latency grow for as long as the"
            " simulation runs",
            highlight=False,
            soft_wrap=True,
        )


def _as_simulated(
    network: Network, coming: "ArrivalProcess", services: "Distribution | None"
) -> Network:
    """The network with the scvs of the simulation, so that the model uses the same."""
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


def _seconds_by_default(network: Network) -> float:
    from tidegate.models.queueing.traffic import visit_ratios

    tuples = max(TUPLES_AT_LEAST, VISITS_BY_DEFAULT / max(float(visit_ratios(network).sum()), 1.0))
    return tuples / network.rate
