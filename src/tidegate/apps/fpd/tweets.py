"""Generated tweets: sets of words, most from a zipf distribution, some from a planted group.

A tweet is a pure function of its number and the seed. The paper's 28 million tweets (DRS section
V-B) are not public, so these are modelled: short, as tweets are after rare and stop words were
taken out. Planted groups are words that come together for a while, and then no more: what a
detector of frequent patterns is for.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tidegate.apps.fpd.itemsets import VOCABULARY, Ints
from tidegate.errors import AskedWrongly
from tidegate.workload.counter import uniforms, words

NONE = np.int64(1 << 40)
"""In a matrix of words: no word. Larger than any word, so that sorting moves it to the end."""

_PLANTED, _GROUP, _LENGTH, _WORD, _GROUP_WORD = 11, 12, 13, 20, 40
"""Streams of random numbers, one for each thing that is drawn."""
_GROUP_WORDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Tweets:
    """What tweets are like."""

    seed: int = 1
    vocabulary: int = 5000
    exponent: float = 0.6
    """Of the zipf distribution of words; flatter than of all words, as stop words are out."""
    lengths: tuple[float, ...] = (0.62, 0.26, 0.08, 0.025, 0.01, 0.005)
    """The shares of tweets with one drawn word, two, and so on. A word drawn twice counts once."""
    planted: float = 0.17
    """The share of tweets about a planted group: all its words, and perhaps one more."""
    groups: int = 200
    """How many groups are there at a time."""
    era: int = 5000
    """After how many tweets a group's words are replaced by others; not all at the same time."""

    def __post_init__(self) -> None:
        if not _GROUP_WORDS < self.vocabulary <= VOCABULARY:
            raise AskedWrongly(
                f"a vocabulary of {self.vocabulary} words is not possible; give 4 to {VOCABULARY}"
            )

    @classmethod
    def of_window(cls, window: int, seed: int) -> "Tweets":
        """Tweets for a window of this size.

        There are more words and more groups for a larger window, so that about as many patterns
        become frequent or cease to be, for each tweet, whatever the size (see `docs/apps/fpd.md`).
        """
        return cls(
            seed=seed,
            vocabulary=min(max(window, 10), VOCABULARY),
            groups=max(window // 25, 1),
            era=window,
        )

    @property
    def longest(self) -> int:
        """The most words of a tweet."""
        return max(len(self.lengths), _GROUP_WORDS + 1)

    def words(self, numbers: Ints) -> Ints:
        """The words of each tweet, increasing from column to column, with `NONE` at the end."""
        drawn = self._drawn(numbers)
        planted = uniforms(words(numbers, self.seed, _PLANTED)) < self.planted
        drawn[planted] = self._about_a_group(numbers[planted], drawn[planted])
        drawn.sort(axis=1)
        again = drawn[:, 1:] == drawn[:, :-1]
        drawn[:, 1:][again] = NONE
        drawn.sort(axis=1)
        return drawn

    def _drawn(self, numbers: Ints) -> Ints:
        """Words by the zipf distribution, without regard to groups."""
        ends = np.cumsum(self.lengths)
        shares = uniforms(words(numbers, self.seed, _LENGTH))
        length = 1 + np.searchsorted(ends[:-1] / ends[-1], shares, side="right")
        ranks = _rank_ends(self.vocabulary, self.exponent)
        drawn = np.full((len(numbers), self.longest), NONE, dtype=np.int64)
        for place in range(len(self.lengths)):
            some = length > place
            at = uniforms(words(numbers[some], self.seed, _WORD + place))
            drawn[some, place] = np.searchsorted(ranks, at, side="right")
        return drawn

    def _about_a_group(self, numbers: Ints, drawn: Ints) -> Ints:
        """The words of a group; with them a drawn word, if the tweet had two."""
        share = uniforms(words(numbers, self.seed, _GROUP))
        group = (share**2 * self.groups).astype(np.int64)  # the first ones are told of most
        told = np.full_like(drawn, NONE)
        told[:, :_GROUP_WORDS] = self.group_words(numbers, group)
        told[:, _GROUP_WORDS] = drawn[:, 1]
        return told

    def group_words(self, numbers: Ints, group: Ints) -> Ints:
        """The words of a group at the time of each tweet.

        Groups are replaced one after the other within an era, so that the patterns of a window
        come and go all the time.
        """
        eras = (numbers + group * self.era // self.groups) // self.era
        which = eras * self.groups + group
        found = [
            (words(which, self.seed, _GROUP_WORD + place) % np.uint64(self.vocabulary))
            for place in range(_GROUP_WORDS)
        ]
        return np.stack(found, axis=1).astype(np.int64)


@lru_cache(maxsize=4)
def _rank_ends(count: int, exponent: float) -> npt.NDArray[np.float64]:
    """Upper ends of the words' intervals in [0, 1); word 0 is the most frequent."""
    sums = np.cumsum(np.arange(1, count + 1, dtype=np.float64) ** -exponent)
    ends: npt.NDArray[np.float64] = sums / sums[-1]
    ends[-1] = 1.0
    return ends
