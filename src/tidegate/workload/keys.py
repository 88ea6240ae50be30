"""The keys of rows: uniform or zipf over n keys, a pure function of seed, row and time."""

import functools
import math
import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tidegate.errors import AskedWrongly
from tidegate.workload.counter import uniforms, words

HELP = (
    "uniform:KEYS, zipf:KEYS,EXPONENT, zipf:KEYS,EXPONENT@SECOND,... (hot keys change then) or"
    " zipf:KEYS,EXPONENT/SECONDS (hot keys change that often)"
)


@dataclass(frozen=True, slots=True)
class Keys:
    """A distribution over the keys 0 to `count` - 1; exponent 0 is uniform.

    The rank r (0 is the hottest) has weight (r + 1) ** -exponent. A seeded permutation maps ranks
    to keys. A new one applies from each of `changes_ms` on, or every `every_ms` if that is given,
    so the hot keys change.
    """

    count: int
    exponent: float = 0.0
    changes_ms: tuple[int, ...] = ()
    every_ms: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.count <= 10**8:
            raise AskedWrongly(f"{self.count} keys are not possible; give 1 to 100,000,000.")
        if not (math.isfinite(self.exponent) and 0 <= self.exponent <= 10):
            raise AskedWrongly(
                f"a zipf exponent of {self.exponent:g} is not possible; give 0 to 10."
            )
        if (
            list(self.changes_ms) != sorted(set(self.changes_ms))
            or min(self.changes_ms, default=1) < 0
        ):
            raise AskedWrongly(
                "the seconds at which hot keys change must increase and not be negative."
            )
        if self.every_ms is not None and (self.every_ms < 1 or self.changes_ms):
            raise AskedWrongly(
                "hot keys change every millisecond at most, or else at given seconds, not both."
            )

    def at(
        self, rows: npt.NDArray[np.int64], arrival_us: npt.NDArray[np.int64], seed: int
    ) -> npt.NDArray[np.int64]:
        """The key of each row; `arrival_us` is when it arrives."""
        shares = uniforms(words(rows, seed, stream=1))
        if self.exponent == 0:
            ranks = (shares * self.count).astype(np.int64)
        else:
            ranks = np.searchsorted(_cumulative(self.count, self.exponent), shares, side="right")
        if self.every_ms is not None:
            eras = arrival_us // (1000 * self.every_ms)
        elif self.changes_ms:
            eras = np.searchsorted(np.array(self.changes_ms), arrival_us // 1000, side="right")
        else:
            return self._permuted(ranks, 0, seed)
        keys = np.empty_like(ranks)
        for era in np.unique(eras):
            chosen = eras == era
            keys[chosen] = self._permuted(ranks[chosen], int(era), seed)
        return keys

    def _permuted(self, ranks: npt.NDArray[np.int64], era: int, seed: int) -> npt.NDArray[np.int64]:
        """Permute ranks to keys: rank * a + b modulo count, with a and count coprime."""
        bits = words(np.array([2 * era, 2 * era + 1], dtype=np.int64), seed, stream=2)
        factor = int(bits[0] % np.uint64(self.count)) or 1
        while math.gcd(factor, self.count) != 1:
            factor += 1
        shift = int(bits[1] % np.uint64(self.count))
        return (ranks * factor + shift) % self.count

    def __str__(self) -> str:
        """The short form that `parse_keys` reads."""
        if self.exponent == 0 and not self.changes_ms and self.every_ms is None:
            return f"uniform:{self.count}"
        zipf = f"zipf:{self.count},{self.exponent!r}"
        if self.every_ms is not None:
            return f"{zipf}/{self.every_ms / 1000!r}"
        changes = ",".join(repr(change / 1000) for change in self.changes_ms)
        return zipf + (f"@{changes}" if changes else "")


def parse_keys(text: str) -> Keys:
    """Parse a distribution of keys from its short form."""
    if match := re.fullmatch(r"uniform:(\d+)", text.strip()):
        return Keys(int(match.group(1)))
    number = r"[\d.eE+-]+"
    form = rf"zipf:(\d+),({number})(?:@([\d.,eE+-]+)|/({number}))?"
    if match := re.fullmatch(form, text.strip()):
        try:
            exponent = float(match.group(2))
            changes = [round(float(at) * 1000) for at in (match.group(3) or "").split(",") if at]
            every_ms = None if match.group(4) is None else round(float(match.group(4)) * 1000)
        except (ValueError, OverflowError):
            pass
        else:
            return Keys(int(match.group(1)), exponent, tuple(changes), every_ms)
    raise AskedWrongly(f"'{text}' is not a distribution of keys; write {HELP}.")


@functools.lru_cache(maxsize=4)
def _cumulative(count: int, exponent: float) -> npt.NDArray[np.float64]:
    """Upper ends of the ranks' intervals in [0, 1); the last is 1, so every number has a rank."""
    weights = np.arange(1, count + 1, dtype=np.float64) ** -exponent
    sums = np.cumsum(weights)
    ends: npt.NDArray[np.float64] = sums / sums[-1]
    return ends
