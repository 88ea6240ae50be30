"""Lag in words: rows and seconds behind the sources."""

from collections.abc import Sequence

from tidegate.control.measurement import Measurement
from tidegate.control.record import Record
from tidegate.control.sources.source_notes import SourceNotes
from tidegate.units import format_duration


def lag_words(tick: Measurement) -> str | None:
    """The lag of a tick; None where no source tells it."""
    rows = tick.lag_rows
    if rows is None:
        return None
    if rows == 0:
        return "0 rows"
    seconds = tick.lag_s
    return f"{rows:,d} rows" + ("" if seconds is None else f", {format_duration(seconds)}")


def most_behind(ticks: Sequence[Measurement]) -> Measurement | None:
    """The tick with the largest lag; None where no source tells it."""
    told = [tick for tick in ticks if tick.lag_rows is not None]
    return max(told, key=lambda tick: tick.lag_rows or 0, default=None)


def lag_sentence(ticks: Sequence[Measurement]) -> str:
    """One sentence about the lag of a run; empty where no source tells it."""
    most = most_behind(ticks)
    if most is None:
        return ""
    last = [tick for tick in ticks if tick.lag_rows is not None][-1]
    if not most.lag_rows:
        return "No batch left rows in its source."
    return (
        f"Rows stayed behind in the source: {lag_words(most)} at most, {lag_words(last)} at last."
    )


def source_limits(records: Sequence[Record]) -> list[tuple[str, float]]:
    """What limited the run at its sources, with the seconds for which each was so.

    They are found from the measurements again, as bottlenecks are.
    """
    noter, found = SourceNotes(), dict[str, float]()
    for record in records:
        tick = record.measurement
        if tick.stale is None:
            for note in noter.notes(tick):
                found[note] = found.get(note, 0.0) + tick.interval_s
    return sorted(found.items(), key=lambda pair: -pair[1])
