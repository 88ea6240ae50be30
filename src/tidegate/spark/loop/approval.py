"""Asks a function of the user's before a decision is acted on.

The function may hang or fail, and control must go on: it runs in a thread of its own and has two
seconds. Whatever is not a clear yes is a no, because who gives such a function wants to be asked.
"""

from typing import Any

from tidegate.control.decision import Decision
from tidegate.control.measurement import Measurement
from tidegate.logs import reason
from tidegate.spark.loop.patience import Answered, NoAnswer
from tidegate.spark.options import Approval

APPROVAL_S = 2.0
"""How long a function may take to approve a decision."""


class AskedUser:
    """The function that was given as `approve`, as the controller asks it."""

    def __init__(self, function: Approval, *, patience_s: float = APPROVAL_S) -> None:
        self._function = function
        self._calls = Answered("the function", patience_s=patience_s, hint="nothing is done")

    def __call__(self, decision: Decision, measurement: Measurement) -> Decision | str:
        """The decision to act on, or why none is."""
        try:
            answer: Any = self._calls.call(lambda: self._function(decision, measurement))
        except NoAnswer as error:
            return str(error)
        except BaseException as error:
            return f"it raised {reason(error)}"
        if answer is True:
            return decision
        if answer is False:
            return "it returned False"
        if isinstance(answer, Decision):
            return answer
        kind = "None" if answer is None else f"a {type(answer).__name__}"
        return f"it returned {kind}; return True, False or another Decision"
