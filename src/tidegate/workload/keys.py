"""The keys of rows: uniform or zipf over n keys, a pure function of seed, row and time."""

import functools
import math
import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tidegate.errors import AskedWrongly
from tidegate.workload.counter import uniforms, words

HELP = "uniform:KEYS, zipf:KEYS,EXPONENT or zipf:KEYS,EXPONENT@SECOND,... (hot keys change then)"


@dataclass(frozen=True, slots=True)
class Keys:
    """A distribution over the keys 0 to `count` - 1; exponent 0 is uniform.

    The rank r (0 is the hottest) has weight (r + 1) ** -exponent. A seeded permutation maps ranks
    to keys. A new one applies from each of `changes_ms` on, so the hot keys change.
    """

    count: int
    exponent: float = 0.0
    changes_ms: tuple[int, ...] = ()

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

    def at(
        self, rows: npt.NDArray[np.int64], arrival_us: npt.NDArray[np.int64], seed: int
    ) -> npt.NDArray[np.int64]:
        """The key of each row; `arrival_us` is when it arrives."""
        shares = uniforms(words(rows, seed, stream=1))
        if self.exponent == 0:
            ranks = (shares * self.count).astype(np.int64)
        else:
            ranks = np.searchsorted(_cumulative(self.count, self.exponent), shares, side="right")
        if not self.changes_ms:
            return self._permuted(ranks, 0, seed)
        eras = np.searchsorted(np.array(self.changes_ms), arrival_us // 1000, side="right")
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
        if self.exponent == 0 and not self.changes_ms:
            return f"uniform:{self.count}"
        changes = ",".join(repr(change / 1000) for change in self.changes_ms)
        return f"zipf:{self.count},{self.exponent!r}" + (f"@{changes}" if changes else "")


def parse_keys(text: str) -> Keys:
    """Parse a distribution of keys from its short form."""
    if match := re.fullmatch(r"uniform:(\d+)", text.strip()):
        return Keys(int(match.group(1)))
    if match := re.fullmatch(r"zipf:(\d+),([\d.eE+-]+)(?:@([\d.,eE+-]+))?", text.strip()):
        try:
            exponent = float(match.group(2))
            changes = [round(float(at) * 1000) for at in (match.group(3) or "").split(",") if at]
        except ValueError:
            pass
        else:
            return Keys(int(match.group(1)), exponent, tuple(changes))
    raise AskedWrongly(f"'{text}' is not a distribution of keys; write {HELP}.")


@functools.lru_cache(maxsize=4)
def _cumulative(count: int, exponent: float) -> npt.NDArray[np.float64]:
    """Upper ends of the ranks' intervals in [0, 1); the last is 1, so every number has a rank."""
    weights = np.arange(1, count + 1, dtype=np.float64) ** -exponent
    sums = np.cumsum(weights)
    ends: npt.NDArray[np.float64] = sums / sums[-1]
    return ends
