"""Finds the rows that a user's function cannot process: by halving, not by trying row after row.

A block on which the function fails is halved until what fails is a single row, so k bad rows among
n take about 2 k log2(n) calls. A block without bad rows takes one call, as ever.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from tidegate.errors import TidegateError

T = TypeVar("T")

MOST = 1000
"""More bad rows of one block than these are no bad rows, but a mistake in the function."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A part that a function cannot process by itself, and what it raised."""

    place: int
    error: str


@dataclass(slots=True)
class Narrowed(Generic[T]):
    """What came of a block: results of the parts that went well, and the parts that did not."""

    done: list[tuple[int, int, T]] = field(default_factory=list)
    """(begin, end, result), in order."""
    failed: list[Failed] = field(default_factory=list)
    calls: int = 0


def narrowed(call: Callable[[int, int], T], count: int, what: str, most: int = MOST) -> Narrowed[T]:
    """Call a function on [0, count), and on halves of what it fails on.

    Raises the function's own error, with a word about it, when more than `most` parts fail.
    """
    found: Narrowed[T] = Narrowed()
    waiting = [(0, count)]
    while waiting:
        begin, end = waiting.pop()
        found.calls += 1
        try:
            found.done.append((begin, end, call(begin, end)))
        except Exception as error:
            if end - begin > 1:
                middle = (begin + end) // 2
                waiting += [(middle, end), (begin, middle)]
                continue
            if not count:
                raise  # it fails on no rows at all
            if len(found.failed) == most:
                raise TidegateError(
                    f"{what} fails on more than {most} rows or keys of one block, which looks like "
                    f"a mistake in the function and not in the rows; the last error was "
                    f"{_said(error)}; the batch was not committed; correct the function, and "
                    "start again"
                ) from error
            found.failed.append(Failed(begin, _said(error)))
    return found


def _said(error: BaseException) -> str:
    """An error in one line."""
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), "no message")
    return f"{type(error).__name__}: {text}"
