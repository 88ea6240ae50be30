"""Whether the answers of a run are those of the reference, each of them once."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from tidegate.apps.application import Settings, Verdict
from tidegate.apps.storm_benchmark.topology import Answers, Lines, line_bytes
from tidegate.pipelines.functions.times import microseconds_of


def compared(
    found: Iterable[tuple[Hashable, object]],
    expected: Mapping[Any, object],
    what: str,
    lines: Lines,
    settings: Settings,
    faults: Sequence[str] = (),
) -> Verdict:
    """Compare answers by their key; `what` says what there is one of for each key.

    `faults` are what else was found to be wrong.
    """
    pairs = list(found)
    answers = dict(pairs)
    again = len(pairs) - len(answers)
    wrong = sum(answers.get(key) != expected.get(key) for key in answers.keys() | expected.keys())
    over = f"a sequential computation over {settings.arrived} lines"
    said = f"{len(expected)} {what} equal {over}"
    if wrong or again:
        said = f"{wrong} of {len(expected)} {what} differ from {over}, and {again} came twice"
    said = "; ".join([said, *faults])
    return Verdict(
        correct=not wrong and not again and not faults,
        said=said,
        figures={
            "lines": float(settings.arrived),
            "line_bytes": line_bytes(lines),
            "answers": float(len(expected)),
            "wrong": float(wrong),
            "twice": float(again),
        },
    )


def counted(state: pa.Table | None, key: str) -> list[tuple[str, int]]:
    """The count of each key in a state."""
    return [] if state is None else _pairs(state, key, "count")


def windows(
    answers: Answers, key: str, emitted: str, kept: Callable[[pa.Table], pa.Array]
) -> list[tuple[tuple[str, int], int]]:
    """The value of every window by key and end, whether it was emitted or is still open.

    An emitted window has its value in the column `emitted`; `kept` makes it from the state.
    """
    found: list[tuple[tuple[str, int], int]] = []
    for rows, closed in ((answers.emitted, True), (answers.state, False)):
        if rows is not None:
            end_s = microseconds_of(rows["window_end"])[0] // 1_000_000
            ends = zip(rows[key].to_pylist(), end_s.tolist(), strict=True)
            values = rows[emitted] if closed else kept(rows)
            found += zip(ends, values.to_pylist(), strict=True)
    return found


def not_closed(
    answers: Answers, expected: Iterable[tuple[str, int]], *, every_s: int, size_s: int
) -> list[str]:
    """What is wrong with the windows that are still open, in words."""
    if answers.progress is None or answers.state is None:
        return ["the state of the windows is not there"]
    return answers.progress.faults(
        (1_000_000 * end_s for _, end_s in expected),
        microseconds_of(answers.state["window_end"])[0].tolist(),
        every_us=1_000_000 * every_s,
        size_us=1_000_000 * size_s,
    )


def _pairs(rows: pa.Table, key: str, value: str) -> list[Any]:
    return list(zip(rows[key].to_pylist(), rows[value].to_pylist(), strict=True))
