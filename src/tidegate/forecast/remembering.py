"""Turns what a forecaster has learned into plain JSON values, and back.

A class names the attributes that it learns in `_LEARNED`. Parts that are remembered themselves are
nested. Attributes that are missing in an older document, or that have another shape there, keep
what they have: they are learned again.
"""

import math
from collections import deque
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

_ODD = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
"""Numbers that JSON does not have."""


class Remembered:
    """Has `learned` and `recall` for the attributes in `_LEARNED`."""

    _LEARNED: ClassVar[tuple[str, ...]] = ()
    __slots__ = ()

    def learned(self) -> dict[str, Any]:
        """What it has learned, as plain JSON values."""
        return {name.lstrip("_"): plain(getattr(self, name)) for name in self._LEARNED}

    def recall(self, learned: Mapping[str, Any], age_s: float) -> None:
        """Begin with what was learned up to `age_s` seconds ago."""
        for name in self._LEARNED:
            if name.lstrip("_") in learned:
                now = getattr(self, name)
                setattr(self, name, restored(now, learned[name.lstrip("_")], age_s))


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


def restored(now: Any, value: Any, age_s: float) -> Any:
    """What a document holds, in the form of what there is now."""
    if isinstance(now, Remembered):
        now.recall(value, age_s)
        return now
    if value is None and not (now is None or isinstance(now, (bool, int, float, str))):
        return now
    if isinstance(now, np.ndarray):
        found = np.array(_numbers(value), dtype=now.dtype)
        return found if found.shape == now.shape else now
    if isinstance(now, Mapping):
        return {key: restored(one, value.get(str(key), one), age_s) for key, one in now.items()}
    if isinstance(now, deque):
        return deque(_numbers(value), maxlen=now.maxlen)
    return _numbers(value)


def _numbers(value: Any) -> Any:
    if isinstance(value, str):
        return _ODD.get(value, value)
    if isinstance(value, list):
        return [_numbers(one) for one in value]
    return value
