"""Runs recorded measurements through fresh controllers: what they would have decided, exactly."""

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
    """A recorded tick, and what was decided on it again."""

    record: Record
    decision: Decision

    @property
    def same(self) -> bool:
        """Whether both change the same things; reasons and notes may be worded otherwise."""
        return _changes(self.record.decision) == _changes(self.decision)


def replay(records: Iterable[Record], controller: Controller) -> list[Decision]:
    """The decision of each tick; the same as recorded when the controller is assembled alike.

    A decision is a pure function of measurements and constraints, so a run on Spark can be decided
    again on a desk: to see why, or to see what other options would have decided on the same
    measurements. The share of cores is the recorded one, whatever the controller claims.
    """
    return [_again(record, controller) for record in records]


def replay_runs(
    records: Sequence[Record], assembly: Callable[[Record], Assembly]
) -> list[list[Replayed]]:
    """Every run of a checkpoint, each with a fresh controller.

    Ticks are counted from 1 in each run. `assembly` says what a run's controller is made from,
    given the first record that there is of it.
    """
    runs: list[list[Record]] = []
    for record in records:
        if not runs or record.tick <= runs[-1][-1].tick:
            runs.append([])
        runs[-1].append(record)
    return [
        [
            Replayed(record, decision)
            for record, decision in zip(
                run, replay(run, new_controller(assembly(run[0]))), strict=True
            )
        ]
        for run in runs
    ]


def _again(record: Record, controller: Controller) -> Decision:
    def recorded(claim: Claim) -> int | None:
        return record.share

    return controller.tick(record.measurement, recorded).decision


def _changes(decision: Decision) -> tuple[object, ...]:
    return (
        decision.cores,
        dict(decision.tasks),
        {name: dict(moves) for name, moves in decision.moves.items()},
        decision.keep,
        decision.keep_span_s,
        dict(decision.keep_by_class),
    )
