"""Simulates several pipelines of one application, which share its cores.

Each has its own control loop and target.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.controller import Controller
from tidegate.control.names import DEFAULT_SHEDDER
from tidegate.control.record import Record
from tidegate.control.sharing.division import Sharing
from tidegate.control.target import Target
from tidegate.errors import AskedWrongly
from tidegate.sim.microbatch.outcome import Outcome
from tidegate.sim.microbatch.pipeline import PipelineSimulation
from tidegate.sim.microbatch.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One pipeline of the application."""

    world: World
    target_s: float
    bounds: Bounds


def simulate_together(members: Mapping[str, Member], cores: int) -> dict[str, Outcome]:
    """Run all pipelines tick by tick, each with the default policy and shedder."""
    ticks = {member.world.tick_s for member in members.values()}
    lengths = {member.world.seconds for member in members.values()}
    if len(ticks) != 1 or len(lengths) != 1:
        raise AskedWrongly("pipelines that run together need the same tick and the same length")
    tick_s, seconds = ticks.pop(), lengths.pop()
    sharing = Sharing(cores)
    bodies = {name: PipelineSimulation(member.world) for name, member in members.items()}
    controllers = {name: _controller(member) for name, member in members.items()}
    records: dict[str, list[Record]] = {name: [] for name in members}
    for number in range(1, int(seconds / tick_s + 1e-9) + 1):
        for name, body in bodies.items():
            measurement = body.advance(number * tick_s)
            record = controllers[name].tick(measurement, partial(sharing.share_of, name))
            if record.acted:
                body.act(record.decision)
                if record.decision.cores is not None:
                    sharing.ask(name, record.decision.cores)
            records[name].append(record)
    return {name: body.outcome(records[name]) for name, body in bodies.items()}


def cores_in_use(outcomes: Mapping[str, Outcome]) -> NDArray[np.int64]:
    """The cores that all pipelines together hold, tick by tick."""
    cores = np.array([outcome.cores for outcome in outcomes.values()], dtype=np.int64)
    return np.asarray(cores.sum(axis=0))


def _controller(member: Member) -> Controller:
    """The controller that `start(target=..., cores=..., shed=True)` would use."""
    return new_controller(
        Assembly(target=Target(member.target_s), bounds=member.bounds, shed=DEFAULT_SHEDDER)
    )
