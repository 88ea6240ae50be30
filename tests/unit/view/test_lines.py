"""A run in plain lines: one for each change and each new note."""

import io
from dataclasses import replace

from rich.console import Console

from tests.helpers.synthetic_surge import surge
from tidegate.control.decision import Decision, hold
from tidegate.control.record import Record
from tidegate.view.live.lines import ChangeLines


def shown(records: list[Record]) -> list[str]:
    out = io.StringIO()
    lines = ChangeLines(Console(file=out, width=40))
    for record in records:
        lines.show(record)
    return out.getvalue().splitlines()


def decided(record: Record, decision: Decision, *, held_back: str | None = None) -> Record:
    return replace(record, decision=decision, acted=held_back is None, held_back=held_back)


def test_a_change_is_one_line_whatever_the_width() -> None:
    first, second = surge(2)
    cores = second.measurement.cores_asked
    why = "a reason [in brackets] that is longer than the terminal is wide"
    change = decided(second, Decision(cores=cores + 2, reason=why))
    assert shown([decided(first, hold("nothing to do")), change]) == [
        f"tidegate: 2 s: cores {cores} to {cores + 2}: {why}"
    ]


def test_a_change_that_is_held_back_again_and_again_is_said_once() -> None:
    records = surge(3)
    more = Decision(cores=records[0].measurement.cores_asked + 2, reason="load")
    held = [
        decided(
            replace(one, measurement=replace(one.measurement, cores_asked=more.cores - 2)),
            more,
            held_back="dry run",
        )
        for one in records
    ]
    (line,) = shown(held)
    assert line.endswith("(held back: dry run): load")


def test_a_note_is_said_when_it_is_new() -> None:
    records = surge(4)
    notes = [("late by 2 s",), ("late by 3.5 s",), (), ("late by 2 s", "full")]
    noted = [
        decided(one, replace(hold("nothing to do"), notes=note))
        for one, note in zip(records, notes, strict=True)
    ]
    assert shown(noted) == [
        "tidegate: 1 s: late by 2 s",
        "tidegate: 4 s: late by 2 s",
        "tidegate: 4 s: full",
    ]


def test_a_note_that_was_said_already_is_not_repeated() -> None:
    out = io.StringIO()
    lines = ChangeLines(Console(file=out))
    lines.say("nothing to scale: only measured; give a master")
    (record,) = surge(1)
    lines.show(decided(record, replace(hold("ok"), notes=("nothing to scale: only measured",))))
    assert out.getvalue().splitlines() == [
        "tidegate: nothing to scale: only measured; give a master"
    ]
