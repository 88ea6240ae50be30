"""Generates lines of text: row number n becomes line number n, with words by a zipf distribution.

Lines begin with a capital, have commas and end with a full stop, so that splitting them into words
is work. A line is a pure function of its number and the seed.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.apps.wordcount.options import WordCountOptions
from tidegate.workload.counter import uniforms, words

SCHEMA = "line string"
FEWEST, MOST = 5, 13
"""Words in a line; all lengths are equally likely."""
MEAN_WORDS = (FEWEST + MOST) / 2
_COMMAS = 0.1
"""The share of words with a comma behind them."""
_LENGTH, _COMMA = 51, 52
"""Streams of random numbers; the source's own have lower numbers."""
_SYLLABLES = tuple(first + then for first in "bdfgklmnprstvz" for then in "aeiou")

Ints = npt.NDArray[np.int64]


def lines(numbers: Ints, options: WordCountOptions, seed: int) -> pa.Array:
    """The lines with these numbers."""
    length = FEWEST + (words(numbers, seed, _LENGTH) % np.uint64(MOST - FEWEST + 1)).astype(
        np.int64
    )
    ends = np.cumsum(length)
    position = np.arange(length.sum()) - np.repeat(ends - length, length)
    place = np.repeat(numbers * MOST, length) + position
    word = options.distribution.at(place, np.zeros_like(place), seed)
    comma = uniforms(words(place, seed, _COMMA)) < _COMMAS
    comma[ends - 1] = False
    spelled = _spelled(options.vocabulary).take(pa.array(word + options.vocabulary * comma))
    offsets = pa.array(np.concatenate(([0], ends)).astype(np.int32))
    text = pc.binary_join(pa.ListArray.from_arrays(offsets, spelled), " ")
    return pc.binary_join_element_wise(pc.utf8_capitalize(text), ".", "")


def line_map(options: WordCountOptions, seed: int) -> Callable[[pa.Table], pa.Table]:
    """The first step of the pipeline: row numbers become lines."""

    def write(rows: pa.Table) -> pa.Table:
        return pa.table({"line": lines(rows["seq"].to_numpy(), options, seed)})

    return write


def word(number: int) -> str:
    """How a word is spelled: its number, written in syllables. No two words are the same."""
    spelled = ""
    number += 1
    while number:
        number, syllable = divmod(number - 1, len(_SYLLABLES))
        spelled = _SYLLABLES[syllable] + spelled
    return spelled


@lru_cache(maxsize=2)
def _spelled(vocabulary: int) -> pa.Array:
    """All words, then all words with a comma."""
    plain = pa.array([word(number) for number in range(vocabulary)])
    return pa.concat_arrays([plain, pc.binary_join_element_wise(plain, ",", "")])
