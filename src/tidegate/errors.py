"""Tidegate's two kinds of errors: something failed (exit code 1), or the request was wrong (2).

A message of either kind is one sentence for a person: what was wrong, what was expected, what to
do. The command line prints it without a traceback.
"""

import difflib
from collections.abc import Iterable


class TidegateError(Exception):
    """The request was valid, but carrying it out failed (exit code 1)."""


class AskedWrongly(TidegateError, ValueError):
    """The request was invalid: nothing was started and nothing was lost (exit code 2)."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of an error message about an unknown name: the closest known one, or all of them."""
    choices = sorted(known)
    close = difflib.get_close_matches(name, choices, n=1, cutoff=0.5)
    if close:
        return f"; did you mean '{close[0]}'?"
    if not choices:
        return "; there are none"
    return f"; known: {', '.join(choices)}"


def check_options(given: Iterable[str], known: Iterable[str], what: str) -> None:
    """Refuse options that `what` does not have."""
    names = list(known)
    for name in given:
        if name not in names:
            raise AskedWrongly(f"{what} has no option '{name}'{nearest(name, names)}")
