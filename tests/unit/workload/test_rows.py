"""Rows are a pure function of their number: any range, cut anyhow, is the same again."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import AskedWrongly
from tidegate.workload.counter import uniforms, words
from tidegate.workload.keys import Keys, parse_keys
from tidegate.workload.parse import parse_profile
from tidegate.workload.rows import RowColumns, rows_between

KEYS = [
    "uniform:7",
    "uniform:1000",
    "zipf:1000,1.1",
    "zipf:500,2@0.5,1.25",
    "zipf:500,0.5/0.75",
    "zipf:500,0.0/2.0",
]


def assert_same(one: RowColumns, other: RowColumns) -> None:
    for name in ("key", "value", "seq", "arrival_us"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@given(
    st.sampled_from(KEYS),
    st.sampled_from(["constant:900", "sine:500+-500/3", "step:50@0,5000@1/2"]),
    st.integers(-(2**70), 2**70),
    st.integers(0, 10**12),
    st.lists(st.integers(0, 300), min_size=1, max_size=5),
)
@settings(max_examples=60, deadline=None)
def test_any_cut_gives_the_same_rows(
    keys_text: str, profile_text: str, seed: int, first: int, lengths: list[int]
) -> None:
    keys, profile = parse_keys(keys_text), parse_profile(profile_text)
    cuts = first + np.concatenate(([0], np.cumsum(lengths)))
    whole = rows_between(profile, keys, seed, first, int(cuts[-1]))
    parts = [
        rows_between(profile, keys, seed, int(begin), int(end))
        for begin, end in itertools.pairwise(cuts)
    ]
    names = ("key", "value", "seq", "arrival_us")
    joined = RowColumns(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in names)
    )
    assert_same(whole, joined)


def test_a_seed_makes_other_rows() -> None:
    profile, keys = parse_profile("500"), Keys(1000)
    one = rows_between(profile, keys, 1, 0, 1000)
    other = rows_between(profile, keys, 2, 0, 1000)
    assert np.mean(one.key == other.key) < 0.05
    assert np.mean(one.value == other.value) < 0.05


def test_values_add_up_exactly_in_any_order() -> None:
    value = rows_between(parse_profile("500"), Keys(10), 1, 0, 100_000).value
    assert np.sum(value) == sum(sorted(value.tolist()))
    assert value.min() >= 0 and value.max() < 1
    assert value.mean() == pytest.approx(0.5, abs=0.01)


def test_uniforms_fill_the_unit_interval() -> None:
    shares = uniforms(words(np.arange(100_000), seed=5))
    counts = np.histogram(shares, bins=20, range=(0, 1))[0]
    chi_squared = np.sum((counts - 5000) ** 2 / 5000)
    assert chi_squared < 43.8  # 19 degrees of freedom, one in a thousand
    assert abs(np.corrcoef(shares[:-1], shares[1:])[0, 1]) < 0.01


@pytest.mark.parametrize("exponent", [0.5, 1.0, 1.5])
def test_zipf_shares(exponent: float) -> None:
    keys = Keys(50, exponent)
    rows = np.arange(200_000)
    drawn = np.sort(np.bincount(keys.at(rows, rows, seed=3), minlength=50))[::-1]
    weights = np.arange(1, 51.0) ** -exponent
    np.testing.assert_allclose(drawn[:5] / 200_000, (weights / weights.sum())[:5], rtol=0.05)


def test_every_key_is_reached_and_no_other() -> None:
    rows = np.arange(20_000)
    for keys in (Keys(97), Keys(100, 0.3), Keys(1), Keys(64, 0.2, (5,))):
        assert set(keys.at(rows, rows, seed=1).tolist()) == set(range(keys.count))


def test_hot_keys_change_at_the_given_times() -> None:
    keys = Keys(10_000, 1.5, (1000, 2000))
    rows = np.arange(30_000)
    arrival_us = rows * 100
    drawn = keys.at(rows, arrival_us, seed=9)
    hottest = [int(np.bincount(drawn[era : era + 10_000]).argmax()) for era in (0, 10_000, 20_000)]
    assert len(set(hottest)) == 3
    alone = keys.at(rows[10_000:20_000], arrival_us[10_000:20_000], seed=9)
    np.testing.assert_array_equal(drawn[10_000:20_000], alone)


def test_hot_keys_change_every_so_often() -> None:
    often, listed = parse_keys("zipf:10000,1.5/1.5"), Keys(10_000, 1.5, (1500, 3000, 4500))
    rows = np.arange(50_000)
    drawn = often.at(rows, rows * 100, seed=9)
    np.testing.assert_array_equal(drawn, listed.at(rows, rows * 100, seed=9))
    eras = [drawn[begin : begin + 15_000] for begin in (0, 15_000, 30_000)]
    assert len({int(np.bincount(era).argmax()) for era in eras}) == 3


@pytest.mark.parametrize("text", KEYS)
def test_the_short_form_is_read_back(text: str) -> None:
    assert parse_keys(str(parse_keys(text))) == parse_keys(text)


@pytest.mark.parametrize(
    "text",
    [
        "uniform:0",
        "uniform:-1",
        "zipf:10",
        "zipf:10,-1",
        "zipf:10,1@5,3",
        "zipf:10,1/0",
        "zipf:10,1/-3",
        "zipf:10,1/5@3",
        "zipf:10,1@3/5",
        "zipf:10,1/1e999",
        "zipf:10,1.1.1",
        "normal:3",
        "",
    ],
)
def test_bad_keys_are_one_sentence(text: str) -> None:
    with pytest.raises(AskedWrongly) as caught:
        parse_keys(text)
    assert "\n" not in str(caught.value)
