"""The two ways a run can go wrong, so that the command line can tell them apart.

A message of either kind is one sentence for a person: what was wrong, what was expected, what to
do. The command line prints it without a traceback.
"""

import difflib
from collections.abc import Iterable


class TidegateError(Exception):
    """It failed: the ask was sound, but it could not be done (exit code 1)."""


class AskedWrongly(TidegateError, ValueError):
    """It was asked wrongly: nothing was started and nothing was lost (exit code 2)."""


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint for a misspelt name: `; did you mean 'x'?`, else the names there are."""
    choices = sorted(known)
    close = difflib.get_close_matches(name, choices, n=1, cutoff=0.5)
    if close:
        return f"; did you mean '{close[0]}'?"
    if not choices:
        return "; there are none"
    return f"; known: {', '.join(choices)}"
