"""What can be varied in the five applications; Intel's own numbers are the defaults but for one.

Intel's rolling count has a window of five minutes. A run of a minute would not see it move, so it
is half a minute here, with as many slots.
"""

import re
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.apps.storm_benchmark.sentences import MOST_WORDS
from tidegate.errors import AskedWrongly

MOST_PAGES = 10_000
MOST_USERS = 1_000_000
MOST_SECONDS = 3600
MOST_SLOTS = 60

_WORDS = {"words": "how many different words there are; default 10000"}
_LOG = {
    "pages": "how many pages there are, 3 as in Intel's logs or more; default 3",
    "users": "how many users there are; default 100",
}


def _window(seconds: int, every: int) -> dict[str, str]:
    return {
        "window_s": f"the length of the window in seconds; default {seconds}",
        "every_s": f"after how many seconds it moves and is emitted; default {every}",
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class GrepOptions:
    """The text, and what is looked for."""

    words: int = 10_000
    pattern: str = "string"
    """A regular expression; a line that has it anywhere is counted."""

    def __post_init__(self) -> None:
        _check("words", self.words, 1, MOST_WORDS)
        try:
            re.compile(self.pattern)
            pc.match_substring_regex(pa.array([""]), self.pattern)
        except (re.error, OverflowError, RecursionError, pa.ArrowInvalid):
            raise AskedWrongly(
                f"pattern={self.pattern}: this is no regular expression that both Python and RE2"
                " can read; give one without look-around and references back, and with counts up"
                " to 1000"
            ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class RollingCountOptions:
    """The text, and the window in which its words are counted."""

    words: int = 10_000
    window_s: int = 30
    every_s: int = 6

    def __post_init__(self) -> None:
        _check("words", self.words, 1, MOST_WORDS)
        _check_window(self.window_s, self.every_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """The pages and users of the log."""

    pages: int = 3
    users: int = 100

    def __post_init__(self) -> None:
        _check("pages", self.pages, 3, MOST_PAGES)
        _check("users", self.users, 1, MOST_USERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitorOptions:
    """The pages and users of the log, and the window in which visitors are counted."""

    pages: int = 3
    users: int = 100
    window_s: int = 9
    every_s: int = 3

    def __post_init__(self) -> None:
        _check("pages", self.pages, 3, MOST_PAGES)
        _check("users", self.users, 1, MOST_USERS)
        _check_window(self.window_s, self.every_s)


GREP_MEANINGS = {
    **_WORDS,
    "pattern": "a regular expression; lines that have it are counted; default string",
}
ROLLING_COUNT_MEANINGS = _WORDS | _window(30, 6)
LOG_MEANINGS = _LOG
VISITOR_MEANINGS = _LOG | _window(9, 3)


def _check(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise AskedWrongly(f"{name}={value}: give {least} to {most}")


def _check_window(window_s: int, every_s: int) -> None:
    _check("window_s", window_s, 1, MOST_SECONDS)
    _check("every_s", every_s, 1, window_s)
    if window_s % every_s or window_s // every_s > MOST_SLOTS:
        raise AskedWrongly(
            f"window_s={window_s}, every_s={every_s}: a window is a whole number of slots, up to"
            f" {MOST_SLOTS}; give a window_s that is a multiple of every_s"
        )
