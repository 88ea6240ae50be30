"""Turns what a forecaster has learned into plain JSON values, and back.

A class names the attributes that it learns in `_LEARNED`. Parts that are remembered themselves are
nested. A document may be older than the code, or damaged: a value that is missing, that has another
type or shape, or that is not a finite number is left out, and the attribute keeps what it has. It
is learned again. Otherwise one odd value would make every later tick fail.
"""

import math
from collections import deque
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

HALF_FORGOTTEN_S = 7 * 86_400.0
"""What an earlier run learned counts half after so long."""
_ODD = {"inf": math.inf, "-inf": -math.inf}
"""Numbers that JSON does not have."""


class _Unfit(ValueError):
    """A value of a document that cannot be what an attribute holds."""


class Remembered:
    """Has `learned` and `recall` for the attributes in `_LEARNED`."""

    _LEARNED: ClassVar[tuple[str, ...]] = ()
    _LIKE: ClassVar[Mapping[str, Any]] = {}
    """Examples for attributes that do not show what they hold at first: what one holds that begins
    as None, and an entry of a sequence that begins empty (a number, where none is given)."""
    __slots__ = ()

    def learned(self) -> dict[str, Any]:
        """What it has learned, as plain JSON values."""
        return {name.lstrip("_"): plain(getattr(self, name)) for name in self._LEARNED}

    def recall(self, learned: Mapping[str, Any], age_s: float) -> None:
        """Begin with what was learned up to `age_s` seconds ago."""
        for name in self._LEARNED:
            key = name.lstrip("_")
            if key in learned:
                now, like = getattr(self, name), self._LIKE.get(name)
                setattr(self, name, restored(now, learned[key], age_s, like))


def held(age_s: float) -> float:
    """The share of its weight that is left to what was learned so long ago."""
    return float(0.5 ** (max(age_s, 0.0) / HALF_FORGOTTEN_S))


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, Remembered):
        return value.learned()
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, deque)):
        return [plain(one) for one in value]
    return value if value is None or isinstance(value, (bool, int, str)) else None


def restored(now: Any, value: Any, age_s: float, like: Any = None) -> Any:
    """What a document holds, in the form of what there is now; that itself if it does not fit."""
    if isinstance(now, Remembered):
        if isinstance(value, Mapping):
            now.recall(value, age_s)
        return now
    if isinstance(now, Mapping):
        found = value if isinstance(value, Mapping) else {}
        return {key: restored(one, found.get(str(key), one), age_s) for key, one in now.items()}
    try:
        return _fitting(now, value, like)
    except _Unfit:
        return now


def _fitting(now: Any, value: Any, like: Any) -> Any:
    if isinstance(now, np.ndarray):
        return _array(now, value)
    if isinstance(now, (deque, list)):
        if not isinstance(value, list):
            raise _Unfit
        entries = [_as(0.0 if like is None else like, one) for one in value]
        return deque(entries, maxlen=now.maxlen) if isinstance(now, deque) else entries
    if like is not None:
        return None if value is None else _as(like, value)
    if isinstance(now, float) and not math.isfinite(now) and isinstance(value, str):
        if value in _ODD:
            return _ODD[value]
        raise _Unfit
    return _as(now, value)


def _as(like: Any, value: Any) -> Any:
    """The value, if it has the type of the example; numbers are finite."""
    if isinstance(like, tuple):
        if not isinstance(value, list) or len(value) != len(like):
            raise _Unfit
        return tuple(_as(one, part) for one, part in zip(like, value, strict=True))
    if isinstance(like, (bool, str)):
        if type(value) is type(like):
            return value
        raise _Unfit
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _Unfit
    if isinstance(like, int):
        if isinstance(value, int):
            return value
        raise _Unfit
    if not isinstance(like, float):
        raise _Unfit
    return finite(value)


def finite(value: Any) -> float:
    """The value as a number; a ValueError if it is none, or not a finite one."""
    try:
        number = float(value)
    except (TypeError, OverflowError) as error:
        raise _Unfit(f"{value!r} is not a number") from error
    if not math.isfinite(number):
        raise _Unfit(f"{value!r} is not a finite number")
    return number


def _array(now: np.ndarray[Any, Any], value: Any) -> np.ndarray[Any, Any]:
    """An array of the same shape and type; infinite only where it may be so from the start."""
    try:
        found = np.array(_numbers(value), dtype=now.dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise _Unfit from error
    odd = np.isnan(found) | (np.isinf(found) if np.isfinite(now).all() else False)
    if found.shape != now.shape or odd.any():
        raise _Unfit
    return found


def _numbers(value: Any) -> Any:
    if isinstance(value, str):
        return _ODD.get(value, value)
    if isinstance(value, list):
        return [_numbers(one) for one in value]
    return value
