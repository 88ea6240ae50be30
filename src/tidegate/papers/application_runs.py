"""Runs of applications within an experiment: what ends the experiment, and what was wrong."""

from collections.abc import Sequence

from tidegate.apps.run_application import ApplicationRun
from tidegate.errors import TidegateError


def run_to_its_end(ran: ApplicationRun) -> ApplicationRun:
    """The run itself, if it was not ended by Ctrl-C and was long enough to be measured."""
    if ran.verdict is None:
        raise KeyboardInterrupt  # it was ended by Ctrl-C, which is to end the experiment as well
    if not ran.records:
        raise TidegateError(f"the run of '{ran.name}' was too short to be measured")
    return ran


def wrong_answers(runs: Sequence[ApplicationRun]) -> list[str]:
    """What the verifiers of some runs found wrong."""
    return [
        f"{one.name}: {one.verdict.said}"
        for one in runs
        if one.verdict is not None and not one.verdict.correct
    ]
