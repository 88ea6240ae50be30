"""Runs recorded measurements through fresh controllers, to show what they would have decided."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tidegate.control.approval import REFUSED, Approve
from tidegate.control.assemble import continued, new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.claim import Claim
from tidegate.control.controller import Controller
from tidegate.control.decision import Decision
from tidegate.control.measurement import Measurement
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


def recorded_assembly(record: Record) -> Assembly:
    """What the controller was built from, by a record that tells it."""
    assert record.assembly is not None
    return Assembly.of(record.assembly)


def replay(
    records: Iterable[Record],
    controller: Controller,
    assembly: Callable[[Record], Assembly] = recorded_assembly,
    on_decided: Callable[[], None] = lambda: None,
) -> list[Decision]:
    """The decision of each tick; the recorded one when the controller is assembled as it was then.

    A decision is a pure function of measurements and constraints, so the decisions of a run on
    Spark can be made again without Spark: to see why they were made, or what other options would
    have decided on the same measurements. The share of cores is the recorded one, whatever the
    controller claims. Where settings changed at run time, it goes on with a controller of the new
    ones, which `assembly` returns for the record that tells them. What was refused or changed by
    `approve` is so again, if the same is decided.
    """
    decisions = []
    in_force = None
    for record in records:
        told = record.assembly
        if told is not None and in_force is not None and told != in_force:
            controller = continued(assembly(record), controller)
        in_force = told or in_force
        decisions.append(_again(record, controller))
        on_decided()
    return decisions


def replay_runs(
    records: Sequence[Record],
    assembly: Callable[[Record], Assembly],
    on_decided: Callable[[], None] = lambda: None,
) -> list[list[Replayed]]:
    """Replay every run of a checkpoint, each with a fresh controller.

    Ticks are counted from 1 in each run. `assembly` returns what a run's controller is built from,
    given the first record of the run that is still there, or one that tells of other settings.
    `on_decided` is called after every tick.
    """
    return [
        [
            Replayed(record, decision)
            for record, decision in zip(
                run,
                replay(run, as_it_began(run[0], assembly(run[0])), assembly, on_decided),
                strict=True,
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

    return controller.tick(record.measurement, recorded, _answer_of(record)).decision


def _answer_of(record: Record) -> Approve:
    """What was answered then, to the same decision; to another one, yes."""
    proposed = record.decision if record.proposed is None else record.proposed
    refused = record.held_back is not None and record.held_back.startswith(REFUSED)

    def answer(decision: Decision, measurement: Measurement) -> Decision | str:
        if _changes(decision) != _changes(proposed):
            return decision
        if refused:
            return (record.held_back or "").removeprefix(f"{REFUSED}: ")
        return decision if record.proposed is None else record.decision

    return answer


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
