"""Generates the log of the other three applications: one line for each view of a page.

A line is `url, HTTP status, zip code, user`, with tabs between them, and is made from its number
alone. The shares are those of Intel's generator: three pages with 70, 20 and 10 % of the views, 5 %
of them not found, two zip codes, a hundred users. With more pages, their shares are by zipf.
"""

import functools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.workload.counter import uniforms, words
from tidegate.workload.profile import Ints

TAB = "\t"
SITE = "http://example.com/"
PAGES = ("", "news", "contact")
PAGE_SHARES = (0.7, 0.2, 0.1)
FOUND, NOT_FOUND = 200, 404
STATUS_SHARES = (0.95, 0.05)
ZIP_CODES = (94709, 94117)
ZIP_SHARES = (0.5, 0.5)
_PAGE, _STATUS, _ZIP, _USER = range(61, 65)
"""The streams of random numbers of this file."""


@dataclass(frozen=True, slots=True)
class AccessLog:
    """A log without end."""

    seed: int
    pages: int
    users: int

    def lines(self, numbers: Ints) -> pa.Array:
        """The lines with these numbers."""
        user = 1 + (words(numbers, self.seed, _USER) % np.uint64(self.users)).astype(np.int64)
        return pc.binary_join_element_wise(
            self._drawn(urls(self.pages), page_shares(self.pages), numbers, _PAGE),
            self._drawn(_texts(FOUND, NOT_FOUND), STATUS_SHARES, numbers, _STATUS),
            self._drawn(_texts(*ZIP_CODES), ZIP_SHARES, numbers, _ZIP),
            pa.array(user).cast(pa.string()),
            TAB,
        )

    def _drawn(
        self, values: pa.Array, shares: tuple[float, ...], numbers: Ints, stream: int
    ) -> pa.Array:
        """One of the values for each number, by their shares."""
        at = uniforms(words(numbers, self.seed, stream))
        return values.take(pa.array(np.searchsorted(_ends(shares), at, side="right")))


@functools.lru_cache(maxsize=4)
def urls(pages: int) -> pa.Array:
    """The pages by their popularity."""
    more = (f"page/{number}" for number in range(len(PAGES), pages))
    return pa.array([SITE + path for path in (*PAGES, *more)])


@functools.lru_cache(maxsize=4)
def page_shares(pages: int) -> tuple[float, ...]:
    """Intel's shares of three pages; 1, 1/2, 1/3, ... of more."""
    if pages == len(PAGES):
        return PAGE_SHARES
    return tuple((1.0 / np.arange(1, pages + 1)).tolist())


@functools.lru_cache(maxsize=8)
def _ends(shares: tuple[float, ...]) -> npt.NDArray[np.float64]:
    """Upper ends of the shares in [0, 1); the last is left out, as nothing lies above it."""
    sums = np.cumsum(shares)
    ends: npt.NDArray[np.float64] = sums[:-1] / sums[-1]
    return ends


def _texts(*numbers: int) -> pa.Array:
    return pa.array([str(number) for number in numbers])
