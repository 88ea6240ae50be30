"""Runs recorded measurements through fresh controllers, to show what they would have decided."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.claim import Claim
from tidegate.control.controller import Controller
from tidegate.control.decision import Decision
from tidegate.control.record import Record


@dataclass(frozen=True, slots=True)
class Replayed:
    """A recorded tick, and the decision that the replay made on it."""

    record: Record
    decision: Decision

    @property
    def same(self) -> bool:
        """Whether both decisions change the same things; their reasons and notes may differ."""
        return _changes(self.record.decision) == _changes(self.decision)


def replay(records: Iterable[Record], controller: Controller) -> list[Decision]:
    """The decision of each tick; the recorded one when the controller is assembled as it was then.

    A decision is a pure function of measurements and constraints, so the decisions of a run on
    Spark can be made again without Spark: to see why they were made, or what other options would
    have decided on the same measurements. The share of cores is the recorded one, whatever the
    controller claims.
    """
    return [_again(record, controller) for record in records]


def replay_runs(
    records: Sequence[Record], assembly: Callable[[Record], Assembly]
) -> list[list[Replayed]]:
    """Replay every run of a checkpoint, each with a fresh controller.

    Ticks are counted from 1 in each run. `assembly` returns what a run's controller is built from,
    given the first record of the run that is still there.
    """
    return [
        [
            Replayed(record, decision)
            for record, decision in zip(
                run, replay(run, as_it_began(run[0], assembly(run[0]))), strict=True
            )
        ]
        for run in runs_of(records)
    ]


def as_it_began(first: Record, assembly: Assembly) -> Controller:
    """A controller that begins with what the one of a recorded run began with."""
    controller = new_controller(assembly)
    if first.recalled is not None:
        controller.recall(first.recalled["learned"], first.recalled["now_s"])
    return controller


def runs_of(records: Sequence[Record]) -> list[list[Record]]:
    """The records of each run of a checkpoint, in order."""
    runs: list[list[Record]] = []
    for record in records:
        if not runs or record.tick <= runs[-1][-1].tick:
            runs.append([])
        runs[-1].append(record)
    return runs


def _again(record: Record, controller: Controller) -> Decision:
    def recorded(claim: Claim) -> int | None:
        return record.share

    return controller.tick(record.measurement, recorded).decision


def _changes(decision: Decision) -> tuple[object, ...]:
    return (
        decision.cores,
        dict(decision.tasks),
        {name: dict(moves) for name, moves in decision.moves.items()},
        dict(decision.deal),
        dict(decision.preview),
        decision.keep,
        decision.keep_span_s,
        dict(decision.keep_by_class),
    )
