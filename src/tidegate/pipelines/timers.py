"""Checks of what a keyed operator says about timers and event time."""

from typing import get_args

import pyarrow as pa

from tidegate.errors import AskedWrongly, nearest
from tidegate.pipelines.functions.columns import time_column
from tidegate.pipelines.functions.times import delay_us
from tidegate.pipelines.keyed import NO_TIMES, Clock, Times


def times_of(
    rows: pa.Schema,
    what: str,
    timer: str | None,
    clock: Clock,
    event_time: str | None,
    delay: str,
) -> Times:
    """What a keyed operator says about time, checked against its rows."""
    if clock not in get_args(Clock):
        raise AskedWrongly(f"{what}: unknown clock='{clock}'{nearest(clock, get_args(Clock))}")
    if timer is not None and clock == "event" and event_time is None:
        raise AskedWrongly(
            f"{what}: the timer '{timer}' follows event time, but nothing says when rows happened; "
            "give event_time= with a timestamp column of the rows, or clock='processing'"
        )
    if event_time is not None:
        time_column(rows, event_time, what)
    late_us = delay_us(delay, f"{what}: delay")
    if late_us and event_time is None:
        raise AskedWrongly(f"{what}: delay='{delay}' needs event_time=; give it, or leave it out")
    if timer is None and clock != "event":
        raise AskedWrongly(
            f"{what}: clock='{clock}' says when a timer goes off; give timer= as well, or leave it "
            "out"
        )
    return Times(timer, clock, event_time, late_us)


def refuse_times(times: Times, what: str, function: object) -> None:
    """Raise an error if a function that states its own times is given others."""
    if times != NO_TIMES:
        raise AskedWrongly(
            f"{what}: {type(function).__name__} states its own timer and event time; leave timer, "
            "clock, event_time and delay out"
        )


def require_timer(times: Times, state: pa.Schema, what: str) -> None:
    """Raise an error unless the timer is a timestamp column of the state."""
    if times.timer is None:
        return
    if times.timer not in state.names:
        raise AskedWrongly(
            f"{what}: the state has no column '{times.timer}' for the timer"
            f"{nearest(times.timer, state.names)}"
        )
    kind = state.field(times.timer).type
    if not pa.types.is_timestamp(kind):
        raise AskedWrongly(
            f"{what}: the timer '{times.timer}' is {kind}, expected a timestamp; declare it as "
            "timestamp in state="
        )
