"""Runs recorded measurements through a fresh controller: what it would have decided, exactly."""

from collections.abc import Iterable

from tidegate.control.claim import Claim
from tidegate.control.controller import Controller
from tidegate.control.decision import Decision
from tidegate.control.record import Record


def replay(records: Iterable[Record], controller: Controller) -> list[Decision]:
    """The decision of each tick; the same as recorded when the controller is assembled alike.

    A decision is a pure function of measurements and constraints, so a run on Spark can be decided
    again on a desk: to see why, or to see what other options would have decided on the same
    measurements. The share of cores is the recorded one, whatever the controller claims.
    """
    return [_again(record, controller) for record in records]


def _again(record: Record, controller: Controller) -> Decision:
    def recorded(claim: Claim) -> int | None:
        return record.share

    return controller.tick(record.measurement, recorded).decision
