"""WordCount without Spark: lines, words, counts, and a verifier that finds wrong ones."""

import itertools
import re
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.keyed_operator import Operator
from tidegate.apps.wordcount.lines import FEWEST, MEAN_WORDS, MOST, line_map, lines, word
from tidegate.apps.wordcount.options import WordCountOptions, wordcount_options
from tidegate.apps.wordcount.reference import compare, expected_counts, word_counts
from tidegate.apps.wordcount.split import split
from tidegate.errors import AskedWrongly
from tidegate.pipelines.functions import count

SMALL = WordCountOptions(vocabulary=50)
SEED = 3


@given(st.integers(0, 2**40), st.integers(0, 2**31), st.integers(1, 4))
def test_a_line_does_not_depend_on_its_neighbours(first: int, seed: int, many: int) -> None:
    together = lines(np.arange(first, first + many), SMALL, seed).to_pylist()
    alone = [lines(np.array([first + n]), SMALL, seed)[0].as_py() for n in range(many)]
    assert together == alone


def test_lines_look_like_lines() -> None:
    made = lines(np.arange(4000), WordCountOptions(), SEED).to_pylist()
    assert all(re.fullmatch(r"[A-Z][a-z]*,?( [a-z]+,?)* [a-z]+\.", line) for line in made)
    lengths = np.array([len(line.split()) for line in made])
    assert (lengths.min(), lengths.max()) == (FEWEST, MOST)
    assert lengths.mean() == pytest.approx(MEAN_WORDS, abs=0.2)
    assert 0.05 < np.mean(["," in text for line in made for text in line.split()]) < 0.15
    assert len(lines(np.empty(0, dtype=np.int64), SMALL, SEED)) == 0


def test_words_follow_their_distribution_and_are_all_different() -> None:
    assert len({word(number) for number in range(20_000)}) == 20_000
    found = expected_counts(3000, WordCountOptions(vocabulary=1000, skew=1.0), SEED)
    shares = np.array([times for _, times in found.most_common(3)]) / found.total()
    harmonic = (1 / np.arange(1, 1001)).sum()
    np.testing.assert_allclose(shares, 1 / np.arange(1, 4) / harmonic, rtol=0.15)
    even = expected_counts(3000, WordCountOptions(vocabulary=10, skew=0.0), SEED)
    assert max(even.values()) < 1.2 * min(even.values())


@given(st.lists(st.text(st.sampled_from("abZ09_ ,.'-\n\té"), max_size=12), max_size=5))
def test_lines_are_split_as_by_a_loop(texts: list[str]) -> None:
    made = split(pa.table({"line": pa.array(texts, pa.string())}))
    found = list(zip(made.parents.to_pylist(), made.rows["word"].to_pylist(), strict=True))
    assert found == [
        (place, one)
        for place, text in enumerate(texts)
        for one in re.findall(r"\w+", text.lower(), re.ASCII)
    ]


@settings(deadline=None, max_examples=15)
@given(st.lists(st.integers(0, 60), max_size=4), st.integers(0, 1000))
def test_cuts_do_not_matter(cuts: list[int], seed: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        counter = Operator(Path(directory), count(), "word")
        for first, end in itertools.pairwise([0, *sorted(cuts), 60]):
            seq = pa.table({"seq": np.arange(first, end)})
            counter.run(split(line_map(SMALL, seed)(seq)).rows)
        found = compare(counter.state(), expected_counts(60, SMALL, seed), 60)
    assert found.correct, found.said
    assert found.figures["words"] >= 60 * FEWEST


def test_wrong_counts_are_found() -> None:
    expected = word_counts(["A b, a.", "c"])
    assert expected == {"a": 2, "b": 1, "c": 1}

    def judged(*rows: tuple[str, int]) -> str:
        state = pa.table([[w for w, _ in rows], [n for _, n in rows]], names=["word", "count"])
        found = compare(state, expected, 2)
        assert found.correct == ("one by one" in found.said)
        return found.said.partition(": ")[2]

    assert judged(("c", 1), ("a", 2), ("b", 1)) == "counted as one by one"
    assert judged(("c", 1), ("a", 3), ("b", 1)) == "1 counts are wrong"
    assert judged(("c", 1), ("a", 2)) == "1 counts are wrong"
    assert judged(("c", 1), ("a", 2), ("b", 1), ("b", 1)) == "1 counts are wrong"
    assert judged(("c", 1), ("a", 2), ("b", 1), ("d", 1)) == "1 counts are wrong"


def test_options_are_read_and_checked() -> None:
    assert wordcount_options({"vocabulary": "7"}) == WordCountOptions(vocabulary=7)
    for name, text, message in [
        ("vocabulary", "0", "give 1 to 1000000"),
        ("skew", "-1", "give 0 to 10"),
        ("words", "3", "has no option 'words'"),
    ]:
        with pytest.raises(AskedWrongly, match=message):
            wordcount_options({name: text})
