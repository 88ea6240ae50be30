"""The generated lines: functions of their number and the seed, with the shares that are told."""

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.apps.storm_benchmark.access_log import AccessLog, urls
from tidegate.apps.storm_benchmark.sentences import (
    FEWEST,
    MOST,
    MOST_WORDS,
    PATTERN,
    PLANTED,
    TEXT_LINES,
    Sentences,
    vocabulary,
)
from tidegate.apps.storm_benchmark.topology import line_bytes

GENERATORS = {"text": Sentences(3, 500).lines, "log": AccessLog(3, 20, 50).lines}
LINE = re.compile(r"http://example\.com/[\w/]*\t(200|404)\t(94709|94117)\t\d+")


@pytest.mark.parametrize("kind", GENERATORS)
@given(first=st.integers(0, 10**12), count=st.integers(0, 40), at=st.integers(0, 40))
def test_any_part_can_be_made_alone(kind: str, first: int, count: int, at: int) -> None:
    lines = GENERATORS[kind]
    whole = lines(np.arange(first, first + count)).to_pylist()
    assert len(whole) == count
    assert lines(np.arange(first + at, first + count)).to_pylist() == whole[at:]


def test_another_seed_gives_other_lines() -> None:
    numbers = np.arange(100)
    assert not Sentences(1, 500).lines(numbers).equals(Sentences(2, 500).lines(numbers))
    assert not AccessLog(1, 3, 100).lines(numbers).equals(AccessLog(2, 3, 100).lines(numbers))


def test_no_two_words_are_alike() -> None:
    assert len(vocabulary(MOST_WORDS).unique()) == MOST_WORDS


def test_the_text_has_lines_of_a_few_words_and_begins_again() -> None:
    lines = Sentences(1, 1000).lines(np.arange(2 * TEXT_LINES)).to_pylist()
    assert lines[:TEXT_LINES] == lines[TEXT_LINES:]
    words = [line.split(" ") for line in lines[:TEXT_LINES]]
    assert {len(line) for line in words} == set(range(FEWEST, MOST + 1))
    counts = Counter(word for line in words for word in line)
    assert set(counts) <= {PATTERN, *vocabulary(1000).to_pylist()}
    first, second = (count for _, count in counts.most_common(2))
    assert first / second == pytest.approx(2.0, rel=0.1)


@pytest.mark.parametrize("seed", [1, 2, 8])
def test_the_share_of_lines_with_the_pattern_does_not_depend_on_the_seed(seed: int) -> None:
    lines = Sentences(seed, 10_000).lines(np.arange(TEXT_LINES)).to_pylist()
    assert sum(PATTERN in line for line in lines) / len(lines) == pytest.approx(PLANTED, abs=0.006)


def test_the_log_has_intels_shares() -> None:
    lines = AccessLog(1, 3, 100).lines(np.arange(20_000)).to_pylist()
    assert all(LINE.fullmatch(line) for line in lines)
    pages, statuses, codes, users = (
        Counter(column) for column in zip(*(line.split("\t") for line in lines), strict=True)
    )
    shares = [pages[url] / len(lines) for url in urls(3).to_pylist()]
    assert shares == pytest.approx([0.7, 0.2, 0.1], abs=0.02)
    assert statuses["404"] / len(lines) == pytest.approx(0.05, abs=0.01)
    assert codes["94709"] / len(lines) == pytest.approx(0.5, abs=0.02)
    assert set(users) == {str(user) for user in range(1, 101)}


def test_more_pages_have_shares_by_zipf() -> None:
    lines = AccessLog(1, 40, 100).lines(np.arange(20_000)).to_pylist()
    assert all(LINE.fullmatch(line) for line in lines)
    pages = Counter(line.split("\t")[0] for line in lines)
    assert set(pages) == set(urls(40).to_pylist())
    first, second = (pages[url] for url in urls(40).to_pylist()[:2])
    assert first / second == pytest.approx(2.0, rel=0.1)


def test_the_size_of_a_line_is_its_mean() -> None:
    lines = Sentences(1, 1000).lines
    sample = lines(np.arange(TEXT_LINES)).to_pylist()
    assert line_bytes(lines) == pytest.approx(
        sum(len(line) + 1 for line in sample) / len(sample), rel=0.01
    )
