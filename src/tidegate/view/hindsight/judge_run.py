"""One run in hindsight: its ticks, its core-seconds by cause, and a verdict on each decision."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tidegate.control.record import Record
from tidegate.view.hindsight.core_change import JUDGED_S, ChangedCores, changes_of_cores
from tidegate.view.hindsight.judged_decision import Fault, JudgedDecision
from tidegate.view.hindsight.missed import missed_causes
from tidegate.view.hindsight.model_off import model_off, question_of
from tidegate.view.hindsight.needs import Needs
from tidegate.view.hindsight.past_tick import PastTick, met_of
from tidegate.view.hindsight.scale_in import early_in, late_in
from tidegate.view.hindsight.scale_out import late_out, needless_out
from tidegate.view.hindsight.settings import settings_of


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """What hindsight knows of one run."""

    ticks: tuple[PastTick, ...]
    causes: Mapping[int, str]
    """Why ticks missed their target, by place (`causes.MISSED`)."""
    verdicts: tuple[JudgedDecision, ...]


def judge_run(
    run: Sequence[Record], start_s: float, watch: Callable[[], None] = lambda: None
) -> JudgedRun:
    """Judge the records of one run, oldest first; seconds are counted from `start_s`.

    `watch` is called once for each tick, to show how far it is.
    """
    settings, met = settings_of(run), met_of(run)
    unjudged = [
        PastTick(record, one, None, good)
        for record, one, good in zip(run, settings, met, strict=True)
    ]
    questions = {
        change.place: question
        for change in changes_of_cores(unjudged, start_s)
        if (question := question_of(change)) is not None
    }
    needs = Needs(run, settings, questions, watch)
    ticks = tuple(
        PastTick(record, one, need, good)
        for record, one, need, good in zip(run, settings, needs.find(), met, strict=True)
    )
    causes = {place: cause for place, cause in enumerate(missed_causes(ticks)) if cause is not None}
    verdicts = tuple(
        _verdict(change, needs.predicted_s.get(change.place), causes)
        for change in changes_of_cores(ticks, start_s)
    )
    return JudgedRun(ticks, causes, verdicts)


def _verdict(
    change: ChangedCores, predicted_s: float | None, causes: Mapping[int, str]
) -> JudgedDecision:
    fault, unknown = None, None
    known_s = sum(tick.seconds for tick in change.following(JUDGED_S) if tick.need is not None)
    soon = known_s < JUDGED_S - change.at.seconds
    if change.at.need is None:
        unknown = "what a batch costs is not known"
    elif change.before > change.at.settings.most(change.at.record.share):
        unknown = "cores had to be released, because fewer were allowed from then on"
    else:
        fault = _fault(change, predicted_s, causes, soon=soon)
        if fault is None and soon:
            unknown = "too little of what followed is on record"
    return JudgedDecision(
        at_s=change.at.at_s - change.start_s,
        before=change.before,
        after=change.after,
        fault=fault,
        unknown=unknown,
    )


def _fault(
    change: ChangedCores, predicted_s: float | None, causes: Mapping[int, str], *, soon: bool
) -> Fault | None:
    """The first fault that applies; with little known of what followed, only earlier ones."""
    if change.after > change.before:
        found = late_out(change, causes)
        if found is None and not soon:
            found = needless_out(change, causes)
    else:
        found = None if soon else early_in(change)
        found = found or late_in(change)
    return found or (None if soon else model_off(change, predicted_s, causes))
