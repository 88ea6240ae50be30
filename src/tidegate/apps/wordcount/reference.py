"""Counts the words of lines one after the other, and compares a run with that."""

import re
from collections import Counter
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from tidegate.apps.application import Verdict
from tidegate.apps.wordcount.lines import lines
from tidegate.apps.wordcount.options import WordCountOptions

_WORD = re.compile(r"\w+", re.ASCII)
_LINES_AT_A_TIME = 65_536


def word_counts(texts: Iterable[str]) -> Counter[str]:
    """How often each word occurs."""
    found: Counter[str] = Counter()
    for text in texts:
        found.update(_WORD.findall(text.lower()))
    return found


def expected_counts(arrived: int, options: WordCountOptions, seed: int) -> Counter[str]:
    """How often each word occurs in the first lines."""
    found: Counter[str] = Counter()
    for first in range(0, arrived, _LINES_AT_A_TIME):
        numbers = np.arange(first, min(first + _LINES_AT_A_TIME, arrived), dtype=np.int64)
        found += word_counts(lines(numbers, options, seed).to_pylist())
    return found


def compare(state: pa.Table, expected: Counter[str], arrived: int) -> Verdict:
    """Whether the counts in the state are the expected ones."""
    found = dict(zip(state["word"].to_pylist(), state["count"].to_pylist(), strict=True))
    again = state.num_rows - len(found)
    wrong = again + sum(
        found.get(word, 0) != expected[word] for word in found.keys() | expected.keys()
    )
    total = expected.total()
    what = f"{len(expected):,} words that occur {total:,} times in {arrived:,} lines"
    return Verdict(
        correct=not wrong,
        said=f"{what}: " + (f"{wrong} counts are wrong" if wrong else "counted as one by one"),
        figures={
            "lines": float(arrived),
            "words": float(total),
            "different_words": float(len(expected)),
            "wrong_words": float(wrong),
        },
    )
