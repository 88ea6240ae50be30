"""Generates the text of grep and rolling count. A line is a function of its number and the seed.

Intel's benchmark reads a novel, and begins again at its end. So does this one, but the text is
made up: as many lines as the novel has, of 5 to 16 words, and words by a zipf distribution. Words
are two syllables. The pattern that Intel's grep looks for is no word of the distribution, where its
share would depend on the seed: it is the first word of a fixed share of the lines.
"""

import functools
from dataclasses import dataclass
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.workload.counter import uniforms
from tidegate.workload.counter import words as random_words
from tidegate.workload.keys import Keys
from tidegate.workload.profile import Ints

TEXT_LINES = 12_800
FEWEST, MOST = 5, 16
"""Words of a line."""
EXPONENT = 1.0
"""Of the words' zipf distribution."""
PATTERN = "string"
PLANTED = 0.05
"""The share of lines that begin with it."""
_SYLLABLES = tuple(
    "".join(letters)
    for letters in product(
        ("b", "d", "f", "g", "k", "l", "m", "p", "v", "st"),
        ("a", "e", "i", "o", "ri"),
        ("", "l", "n", "ng", "s", "t"),
    )
    if not "".join(letters).startswith("strin")
)
"""Each begins with a consonant, no two pairs of them are spelt alike, and none has the pattern."""
MOST_WORDS = len(_SYLLABLES) ** 2
_STEP = 7919
"""A prime, so that few words have as many different syllables as many words."""
_LENGTH = 51
"""The stream of random numbers that lengths are drawn from; `Keys` has its own."""
_PLANTING = 52


@dataclass(frozen=True, slots=True)
class Sentences:
    """A text that begins again at its end."""

    seed: int
    words: int
    """How many different words there are; a text may lack some of the rare ones."""

    def lines(self, numbers: Ints) -> pa.Array:
        """The lines with these numbers."""
        return _text(self.seed, self.words).take(pa.array(numbers % TEXT_LINES))


@functools.lru_cache(maxsize=2)
def _text(seed: int, words: int) -> pa.Array:
    """All lines, one after the other."""
    span = np.uint64(MOST - FEWEST + 1)
    drawn = random_words(np.arange(TEXT_LINES), seed, _LENGTH) % span
    offsets = np.concatenate(([0], np.cumsum(FEWEST + drawn.astype(np.int64))))
    places = np.arange(offsets[-1])
    word = Keys(words, EXPONENT).at(places, np.zeros_like(places), seed)
    chosen = uniforms(random_words(np.arange(TEXT_LINES), seed, _PLANTING)) < PLANTED
    planted = np.zeros(len(places), dtype=np.bool_)
    planted[offsets[:-1][chosen]] = True
    spelt = pc.if_else(
        pa.array(planted), pa.scalar(PATTERN), vocabulary(words).take(pa.array(word))
    )
    lists = pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), spelt)
    return pc.binary_join(lists, " ")


@functools.lru_cache(maxsize=4)
def vocabulary(count: int) -> pa.Array:
    """So many different words; which of them are frequent depends on the seed of the text."""
    numbers = np.arange(count) * _STEP % MOST_WORDS
    syllables = pa.array(_SYLLABLES)
    first, second = np.divmod(numbers, len(_SYLLABLES))
    return pc.binary_join_element_wise(
        syllables.take(pa.array(first)), syllables.take(pa.array(second)), ""
    )
