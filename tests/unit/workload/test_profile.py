"""Rate profiles: the shapes, and that rows are neither lost nor doubled however time is cut."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tidegate.errors import AskedWrongly
from tidegate.workload.parse import parse_profile
from tidegate.workload.profile import Profile, ramp, sine, spike, steps, uniform

SHAPES = [
    "constant:500",
    "333.333",
    "step:100@0,0@3,400@7.5",
    "step:1000@0,0@1,7@2/3",
    "ramp:100-4000/9",
    "ramp:4000-0/9",
    "sine:200+-200/7",
    "spike:100,5000@3+0.25",
    "uniform:1,25",
]

rates = st.one_of(st.just(0.0), st.floats(0.001, 5000, allow_nan=False))


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    gaps = draw(st.lists(st.integers(1, 4000), min_size=0, max_size=6))
    starts = np.concatenate(([0], np.cumsum(np.array(gaps, dtype=np.int64)))) / 1000
    changes = [(float(start), draw(rates)) for start in starts]
    period = draw(st.one_of(st.none(), st.integers(1, 3000)))
    return steps(changes, None if period is None else float(starts[-1]) + period / 1000)


@given(profiles(), st.integers(0, 20_000), st.integers(1, 5_000))
@example(steps([(0.0, 5000 - 1e-9), (0.001, 0.0)]), 0, 1)
@example(steps([(0.0, 0.0), (0.001, 5000 - 1e-9)], 0.002), 0, 2)
@settings(max_examples=60, deadline=None)
def test_a_row_has_arrived_exactly_when_the_count_says_so(
    profile: Profile, begin_ms: int, length_ms: int
) -> None:
    end_ms = begin_ms + length_ms
    first, last = profile.count(begin_ms), profile.count(end_ms)
    arrival_us = profile.arrival_us(np.arange(first, last))
    assert np.all(np.diff(arrival_us) >= 0)
    every_ms = np.arange(begin_ms, end_ms + 1)
    by_stamp = first + np.searchsorted(arrival_us, every_ms * 1000, side="right")
    np.testing.assert_array_equal(by_stamp, profile.counts(every_ms))


@given(profiles(), st.integers(0, 20_000), st.integers(1, 3_000))
@settings(max_examples=40, deadline=None)
def test_a_window_gives_the_same_stamps(profile: Profile, begin_ms: int, length_ms: int) -> None:
    rows = np.arange(profile.count(begin_ms), profile.count(begin_ms + length_ms))
    window = profile.window(begin_ms, begin_ms + length_ms)
    np.testing.assert_array_equal(window.arrival_us(rows), profile.arrival_us(rows))


@pytest.mark.parametrize("text", SHAPES)
def test_the_count_is_the_integral_of_the_rate(text: str) -> None:
    profile = parse_profile(text)
    milliseconds = np.arange(20_000)
    rate_sum = np.cumsum([profile.rate(ms / 1000) / 1000 for ms in milliseconds])
    counted = profile.cumulative(milliseconds + 1)
    np.testing.assert_allclose(counted, rate_sum, rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("text", SHAPES)
def test_the_short_form_is_read_back(text: str) -> None:
    profile = parse_profile(text)
    assert parse_profile(str(profile)).fingerprint == profile.fingerprint


def test_different_profiles_have_different_fingerprints() -> None:
    assert len({parse_profile(text).fingerprint for text in SHAPES}) == len(SHAPES)


def test_rates_of_the_shapes() -> None:
    assert parse_profile("step:100@0,400@30").rate(29.999) == 100
    assert parse_profile("step:100@0,400@30").rate(30) == 400
    assert ramp(100, 400, 60).rate(30) == pytest.approx(250, rel=1e-2)
    assert ramp(100, 400, 60).rate(90) == 400
    assert sine(200, 150, 60).rate(15) == pytest.approx(350, rel=1e-3)
    assert sine(200, 150, 60).rate(45) == pytest.approx(50, rel=1e-2)
    assert sine(200, 150, 60).count(60_000) == 12_000
    assert spike(100, 1000, 20, 5).count(30_000) == 25 * 100 + 5 * 1000
    assert ramp(100, 400, 60).count(60_000) == 15_000


def test_a_uniform_rate_has_every_level_equally_often() -> None:
    profile = uniform(1, 25)
    by_second = np.array([profile.rate(second) for second in range(2000)])
    for begin in range(0, 2000, 25):
        assert sorted(by_second[begin : begin + 25]) == list(range(1, 26))
    assert len({tuple(by_second[begin : begin + 25]) for begin in range(0, 1000, 25)}) == 40
    assert profile.count(25_000) == 25 * 13
    assert uniform(0, 0).count(1000) == 0


@pytest.mark.parametrize(
    "text",
    [
        "constant:-5",
        "-5",
        "constant:nan",
        "constant:",
        "constant:2e9",
        "step:100@5",
        "step:100@0,-1@5",
        "step:100@0,200@0",
        "step:100@0,200@5/4",
        "ramp:100-400/0",
        "ramp:-100-400/10",
        "sine:100+-150/60",
        "sine:100/60",
        "spike:100@5",
        "spike:100,-1000@5+5",
        "uniform:25,1",
        "uniform:-1,25",
        "uniform:5",
        "sinus:100+-50/60",
        "fast",
        "",
        "csv:no-such-file.csv",
    ],
)
def test_a_bad_profile_is_one_sentence(text: str) -> None:
    with pytest.raises(AskedWrongly) as caught:
        parse_profile(text)
    assert "\n" not in str(caught.value)


def test_a_misspelt_kind_gets_a_hint() -> None:
    with pytest.raises(AskedWrongly, match="did you mean 'constant'"):
        parse_profile("constnat:5")


def test_rates_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "rates.csv"
    file.write_text("second,rate\n0,100\n10,50\n\n20,0\n")
    profile = parse_profile(f"csv:{file}")
    assert profile.count(60_000) == 1500
    file.write_text("minute,count\n5,600\n6,1200\n")
    profile = parse_profile(f"csv:{file}")
    assert (profile.rate(0), profile.rate(59), profile.rate(61)) == (10, 10, 20)


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ("second,rate\n0,100\n10,many\n", "line 3"),
        ("second,rate\n0,100\n10\n", "line 3"),
        ("second,rate\n0,-1\n", "line 2"),
        ("second,rate\n0,nan\n", "line 2"),
        ("second,rate\n0,1\n10,2\n5,3\n", "line 4"),
        ("when,rate\n0,1\n", "line 1"),
        ("second,rate\n", "no rates"),
        ("", "line 1"),
    ],
)
def test_a_bad_file_says_where(tmp_path: Path, content: str, place: str) -> None:
    file = tmp_path / "rates.csv"
    file.write_text(content)
    with pytest.raises(AskedWrongly, match=place):
        parse_profile(f"csv:{file}")
