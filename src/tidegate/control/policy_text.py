"""A policy as a person writes it: its name, and behind it its options in brackets.

`drs(model=gigk, w=6)`: a policy with its options is one text, so that `start`, the command line and
records all hold it in the same way.
"""

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from tidegate.errors import AskedWrongly, nearest

_WRITTEN = re.compile(r"\s*([\w-]+)\s*\(([^()]*)\)\s*")
T = TypeVar("T")


def split_policy(text: str) -> tuple[str, str | None]:
    """The name of a policy and the text of its options; None without brackets."""
    found = _WRITTEN.fullmatch(text)
    return (found[1], found[2]) if found else (text.strip(), None)


def written_options(policy: str, known: Iterable[str]) -> dict[str, str]:
    """The options behind a policy's name, as texts; those that it does not know are refused."""
    name, written = split_policy(policy)
    given: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in (written or "").split(","))):
        key, equals, value = (each.strip() for each in part.partition("="))
        if not equals or not value:
            raise AskedWrongly(f"policy '{policy}': '{part}' is not an option; write name=value")
        if key in given:
            raise AskedWrongly(f"policy '{policy}': {key} is given twice; give it once")
        if key not in known:
            raise AskedWrongly(
                f"policy '{policy}': {name} has no option '{key}'{nearest(key, known)}"
            )
        given[key] = value
    return given


def number_of(
    policy: str, key: str, text: str, kind: Callable[[str], T], fits: Callable[[T], bool], what: str
) -> T:
    """The value of a numeric option; one that is no number, or does not fit, is refused."""
    try:
        number = kind(text)
    except ValueError:
        number = None
    if number is None or not fits(number):
        raise AskedWrongly(f"policy '{policy}': {key} is {what}, not '{text}'")
    return number
