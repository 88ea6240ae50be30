"""Runs recorded measurements through a fresh controller: what it would have decided, exactly."""

from collections.abc import Iterable

from tidegate.control.controller import Controller
from tidegate.control.decision import Decision
from tidegate.control.record import Record


def replay(records: Iterable[Record], controller: Controller) -> list[Decision]:
    """The decision of each tick; the same as recorded when the controller is made alike.

    A decision is a pure function of the measurements, so a run on Spark can be decided again on a
    desk: to see why, or what other options would have done with the same first measurement.
    """
    return [controller.tick(record.measurement).decision for record in records]
