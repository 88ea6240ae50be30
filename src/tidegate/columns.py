"""Columns of whole numbers, one for each shard or each file, and their text in a JSON document.

An operator may have tens of thousands of shards, and a driver handles several numbers of each in
every micro-batch. So they stay in arrays, and no Python object is made of each. The text of a
column is what `json.dumps` writes for a list of the same numbers.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self, overload
from uuid import uuid4

import numpy as np
from numpy.typing import ArrayLike, NDArray

Whole = NDArray[np.integer[Any]]

_MARK = f"column {uuid4().hex} "
"""Stands for a column until the rest of a document is written. Nothing else begins with it."""
_BLANK = ord(" ")


class IntColumn(Sequence[int]):
    """Whole numbers that never change. It equals a tuple of the same numbers."""

    __slots__ = ("_text", "array")

    def __init__(self, numbers: ArrayLike) -> None:
        array = np.array(numbers, dtype=np.int64)
        array.flags.writeable = False
        self.array = array
        self._text: str | None = None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """What NumPy computes with: the numbers themselves, where no other type is asked for."""
        if dtype is not None and np.dtype(dtype) != self.array.dtype:
            return self.array.astype(dtype)
        return self.array.copy() if copy else self.array

    def __len__(self) -> int:
        return len(self.array)

    def __iter__(self) -> Iterator[int]:
        return iter(self.array.tolist())

    @overload
    def __getitem__(self, place: int) -> int: ...
    @overload
    def __getitem__(self, place: slice) -> Self: ...
    def __getitem__(self, place: int | slice) -> "int | IntColumn":
        if isinstance(place, slice):
            return type(self)(self.array[place])
        return int(self.array[place])

    def index(self, value: int, start: int = 0, stop: int | None = None) -> int:
        """The first place of a number, as of a tuple."""
        places = np.flatnonzero(self.array[start:stop] == value)
        if not len(places):
            raise ValueError(f"{value} is not in the column")
        return start + int(places[0])

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, IntColumn):
            return bool(np.array_equal(self.array, other.array))
        return isinstance(other, tuple) and tuple(self) == other

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.array,)

    @property
    def json_text(self) -> str:
        """Its list in JSON, written when it is first asked for: a route stays for many batches."""
        if self._text is None:
            self._text = list_text(self.array)
        return self._text


def list_text(numbers: Whole) -> str:
    """The JSON list of these numbers."""
    if not len(numbers):
        return "[]"
    if int(numbers.min()) < 0:  # none of ours are
        return json.dumps(numbers.tolist(), separators=(",", ":"))
    cells = np.concatenate([np.full((len(numbers), 1), ord(","), np.uint8), _digits(numbers)], 1)
    return f"[{_written(cells)[1:]}]"


def lists_text(numbers: Whole, lengths: Whole) -> str:
    """The JSON list of lists of these lengths, whose numbers, none below 0, follow each other."""
    if not len(lengths):
        return "[]"
    # An empty list is written as one that has a number without digits.
    room = np.maximum(lengths, 1)
    first = np.cumsum(room) - room
    empty = first[lengths == 0]
    values = numbers
    if len(empty):
        values = np.zeros(int(room.sum()), dtype=np.int64)
        there = np.ones(len(values), dtype=np.bool_)
        there[empty] = False
        values[there] = numbers
    most = int(values.max())
    digits = _digits(np.arange(most + 1)) if most < len(values) else _digits(values)
    cells = np.full((len(values), 3 + digits.shape[1]), _BLANK, dtype=np.uint8)
    cells[:, 1] = ord(",")
    cells[first, 0], cells[first, 2] = ord("]"), ord("[")
    for place in range(digits.shape[1]):
        column = digits[:, place]
        cells[:, 3 + place] = column[values] if most < len(values) else column
    cells[empty, 3:] = _BLANK
    return f"[{_written(cells)[2:]}]]"


def _digits(numbers: Whole) -> NDArray[np.uint8]:
    """The decimal digits of each number in a row of its own, behind blanks."""
    width = len(str(int(numbers.max())))
    digits = np.empty((len(numbers), width), dtype=np.uint8)
    left: NDArray[Any] = numbers.astype(np.uint32 if width < 10 else np.uint64)
    for place in range(width - 1, -1, -1):
        rest = left // 10
        digits[:, place] = left - 10 * rest + ord("0")
        if place < width - 1:
            digits[left == 0, place] = _BLANK
        left = rest
    return digits


def _written(cells: NDArray[np.uint8]) -> str:
    """The characters of all rows, without blanks."""
    return cells.tobytes().translate(None, bytes([_BLANK])).decode()


def dumps(
    document: Any, plain: Callable[[Any], Any] | None = None, *, allow_nan: bool = True
) -> str:
    """A document as JSON without spaces, with columns as lists.

    A column is an `IntColumn`, or any object with a `json_text`. `plain` says what to write
    for objects of other types, as the `default` of `json.dumps` does.
    """
    texts: list[str] = []

    def instead(value: Any) -> Any:
        text = getattr(value, "json_text", None)
        if isinstance(text, str):
            texts.append(text)
            return f"{_MARK}{len(texts) - 1}"
        if plain is None:
            raise TypeError(f"JSON cannot hold {type(value).__name__}")
        return plain(value)

    whole = json.dumps(document, separators=(",", ":"), allow_nan=allow_nan, default=instead)
    begin, *rest = whole.split('"' + _MARK)
    parts = [begin]
    for part in rest:
        number, behind = part.split('"', 1)
        parts += [texts[int(number)], behind]
    return "".join(parts)
