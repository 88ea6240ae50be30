"""A decision that a person refuses or changes, before it counts as a change."""

import dataclasses

from tests.helpers.pipeline_worlds import measured
from tidegate.control.bounds import Bounds
from tidegate.control.constraints import Constraints
from tidegate.control.controller import Controller
from tidegate.control.decision import Decision, hold
from tidegate.control.limits import Limits
from tidegate.control.measurement import Measurement
from tidegate.control.record import Record


class Wants:
    """A policy that always wants this."""

    name = "wants"

    def __init__(self, decision: Decision) -> None:
        self._decision = decision

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        return self._decision


def wants(decision: Decision, **limits: object) -> Controller:
    return Controller(Wants(decision), bounds=Bounds(1, 6), limits=Limits(**limits))  # type: ignore[arg-type]


SIX = Decision(reason="load", cores=6, tasks={"work": 6})


def test_a_refused_change_is_recorded_and_no_change() -> None:
    run = wants(SIX, t_ra_s=60.0)
    refused = run.tick(measured(0, cores=2), approve=lambda decision, now: "not today")
    assert (refused.acted, refused.held_back) == (False, "refused by approve: not today")
    assert refused.decision.cores == 6 and refused.proposed is None
    assert run.tick(measured(1, cores=2)).acted, "T_ra counts changes that were made"


def test_nobody_is_asked_about_nothing() -> None:
    asked: list[Decision] = []

    def approve(decision: Decision, now: Measurement) -> Decision:
        asked.append(decision)
        return decision

    wants(hold("content")).tick(measured(0, cores=2), approve=approve)
    assert wants(SIX, dry_run=True).tick(measured(0, cores=2), approve=approve).held_back == (
        "dry run"
    )
    run = wants(SIX, t_ra_s=60.0)
    assert run.tick(measured(0, cores=2), approve=approve).acted
    held = run.tick(measured(1, cores=2), approve=approve)
    assert (held.acted, len(asked)) == (False, 1), "what T_ra holds back needs no approval"


def test_another_decision_is_held_to_the_bounds_and_told() -> None:
    def nine(decision: Decision, now: Measurement) -> Decision:
        return dataclasses.replace(decision, cores=9, tasks={})

    record = wants(dataclasses.replace(SIX, cores=3)).tick(measured(0, cores=2), approve=nine)
    assert record.acted and record.decision.cores == 6
    assert record.proposed is not None and record.proposed.cores == 3
    assert "changed by approve: 9 cores instead of 3" in record.decision.notes
    assert "approve asked for 9 cores; 1 to 6 are allowed" in record.decision.notes
    assert Record.from_json(record.to_json()) == record


def test_a_change_to_nothing_or_to_what_is_not_there_is_a_refusal() -> None:
    said = wants(SIX).tick(measured(0, cores=2), approve=lambda decision, now: hold("enough"))
    assert said.held_back == "refused by approve: enough"
    wrong = dataclasses.replace(SIX, tasks={"wrok": 3})
    said = wants(SIX).tick(measured(0, cores=2), approve=lambda decision, now: wrong)
    assert said.held_back == "refused by approve: it names 'wrok', which is no operator"
