"""Computes the answers of a query event by event, and compares a run with that."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tidegate.apps.application import Verdict
from tidegate.apps.event_progress import EventProgress
from tidegate.apps.nexmark.events import NexmarkEvents
from tidegate.apps.nexmark.query import Answers, Query, Row, answers_of, micros

_EVENTS_AT_A_TIME = 65_536


def picked(query: Query, events: NexmarkEvents, arrived: int) -> Sequence[list[Row]]:
    """The inputs of a query among the first events."""
    found: list[list[Row]] = [[] for _ in query.picks]
    for first in range(0, arrived, _EVENTS_AT_A_TIME):
        numbers = np.arange(first, min(first + _EVENTS_AT_A_TIME, arrived), dtype=np.int64)
        for rows, pick in zip(found, query.picks, strict=True):
            rows += micros(pick.rows(events.of(pick.kind, numbers)).rows)
    return found


def closed_by(query: Query, answers: Answers, until_us: int | None) -> Answers:
    """The answers whose windows a watermark has closed; all answers of a query without any."""
    if query.end is None:
        return answers
    place, limit_us = query.end, until_us
    if limit_us is None:
        return Answers()
    return Answers({one: many for one, many in answers.items() if one[place] <= limit_us})


def compare(
    query: Query,
    events: NexmarkEvents,
    arrived: int,
    found: pa.Table | None,
    progress: EventProgress | None,
) -> Verdict:
    """Whether each answer is there, once. Windows that are still open have none yet."""
    before_us = None if progress is None else progress.before_us
    expected = closed_by(query, query.expected(picked(query, events, arrived)), before_us)
    answers = answers_of(found)
    missing, wrong = (expected - answers).total(), (answers - expected).total()
    total = expected.total()
    faults = [
        *([f"{missing:,} are missing"] if missing else []),
        *([f"{wrong:,} are wrong or there again"] if wrong else []),
    ]
    what = f"{total:,} answers to {arrived:,} events"
    return Verdict(
        correct=not faults,
        said=f"{what}: " + ("; ".join(faults) or "as event by event"),
        figures={
            "events": float(arrived),
            "answers": float(total),
            "missing": float(missing),
            "wrong": float(wrong),
        },
    )
