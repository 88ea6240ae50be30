"""scv of known distributions, from what tasks note: sampled stamps in slots, times of blocks."""

from collections.abc import Callable

import numpy as np
import pytest

from tidegate.control.learning.variability import ArrivalScv, BatchArrivalScv, Scv, ServiceScv

SAMPLES = 10_000
Draw = Callable[[np.random.Generator, int], np.ndarray]


def hyperexponential(scv: float) -> Draw:
    first = 0.5 * (1.0 + np.sqrt((scv - 1.0) / (scv + 1.0)))

    def draw(random: np.random.Generator, size: int) -> np.ndarray:
        quick = random.random(size) < first
        rate = np.where(quick, 2.0 * first, 2.0 * (1.0 - first))
        return random.exponential(1.0, size) / rate

    return draw


def uniform(low: float, high: float) -> Draw:
    mean = (low + high) / 2.0
    return lambda random, size: random.uniform(low / mean, high / mean, size)


KNOWN: dict[str, tuple[float, Draw]] = {
    "deterministic": (0.0, lambda _, size: np.ones(size)),
    "erlang 4": (0.25, lambda random, size: random.gamma(4.0, 0.25, size)),
    "erlang 2": (0.5, lambda random, size: random.gamma(2.0, 0.5, size)),
    "exponential": (1.0, lambda random, size: random.exponential(1.0, size)),
    "hyperexponential 2": (2.0, hyperexponential(2.0)),
    "hyperexponential 4": (4.0, hyperexponential(4.0)),
    "uniform of DRS fig. 10 (a)": (0.12, uniform(1 / 8, 1 / 2)),
    "uniform of DRS fig. 10 (b)": (1 / 12, uniform(1 / 9, 1 / 3)),
}
"""Distributions with a mean of 1."""


def close(found: Scv, truth: float) -> bool:
    return abs(found.value - truth) <= 0.15 * truth + 0.01


def noted(at_ms: np.ndarray, every: int = 1, batches: int = 20) -> ArrivalScv:
    """The estimate from rows that arrived at these times, in so many batches."""
    estimate = ArrivalScv()
    for part in np.array_split(np.floor(at_ms).astype(np.int64)[::every], batches):
        slots, counts = np.unique(part, return_counts=True)
        estimate.add(slots, counts, every)
    return estimate


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", KNOWN)
def test_gaps_between_arrivals(name: str, seed: int) -> None:
    truth, draw = KNOWN[name]
    gaps_ms = 20.0 * draw(np.random.default_rng(seed), SAMPLES)
    found = noted(np.cumsum(gaps_ms)).scv
    assert close(found, truth), found
    assert abs(found.value - truth) <= 5.0 * found.error + 0.01, "and it says how wide it is"


@pytest.mark.parametrize("name", KNOWN)
def test_gaps_from_every_fourth_row(name: str) -> None:
    truth, draw = KNOWN[name]
    gaps_ms = 20.0 * draw(np.random.default_rng(7), 4 * SAMPLES)
    assert close(noted(np.cumsum(gaps_ms), every=4).scv, truth)


@pytest.mark.parametrize(("every", "parts"), [(4, 2), (10, 8)])
def test_every_nth_row_of_several_parts(every: int, parts: int) -> None:
    """Rows go to parts at random, and each part notes every n-th of its own."""
    random, estimate = np.random.default_rng(8), ArrivalScv()
    at_ms = np.cumsum(2.0 * random.gamma(2.0, 0.5, 100 * SAMPLES))
    part = random.integers(0, parts, len(at_ms))
    for block, its in zip(np.array_split(at_ms, 400), np.array_split(part, 400), strict=True):
        noted_ms = np.concatenate(
            [block[its == one][int(random.integers(every)) :: every] for one in range(parts)]
        )
        slots, counts = np.unique(noted_ms.astype(np.int64), return_counts=True)
        estimate.add(slots, counts, every, parts)
    assert estimate.scv.value == pytest.approx(0.5, abs=0.15)


def test_an_old_way_to_estimate_does_not_outlive_a_change_of_the_load() -> None:
    """Even arrivals at night, far apart; bursts by day, closer than slots."""
    random, estimate = np.random.default_rng(9), ArrivalScv()
    night_ms = np.cumsum(20.0 * random.gamma(4.0, 0.25, 20_000))
    day_ms = night_ms[-1] + np.cumsum(0.1 * random.exponential(1.0, 40 * SAMPLES))
    for block in (*np.array_split(night_ms, 20), *np.array_split(day_ms, 40)):
        slots, counts = np.unique(block.astype(np.int64), return_counts=True)
        estimate.add(slots, counts, 1)
    assert estimate.scv.value == pytest.approx(1.0, abs=0.15)


@pytest.mark.parametrize("name", [name for name in KNOWN if name != "hyperexponential 4"])
def test_rows_that_are_closer_than_slots_are_counted_per_window(name: str) -> None:
    """20,000 rows/s: 10,000 windows of 32 rows."""
    truth, draw = KNOWN[name]
    gaps_ms = 0.05 * draw(np.random.default_rng(3), 32 * SAMPLES)
    found = noted(np.cumsum(gaps_ms)).scv
    assert abs(found.value - truth) <= 0.15 * truth + 0.05, found


@pytest.mark.parametrize("burst", [5, 20])
def test_bursts(burst: int) -> None:
    """Bursts of b rows at Poisson times vary like single rows with an scv of 2 b - 1 or so.

    The gaps are b - 1 times zero and once the gap between bursts, b means long.
    """
    random = np.random.default_rng(5)
    at_ms = np.repeat(np.cumsum(random.exponential(200.0, SAMPLES)), burst)[: SAMPLES * 2]
    found = noted(at_ms).scv
    assert found.value == pytest.approx(2.0 * burst - 1.0, rel=0.15)


def test_a_load_that_drifts_is_not_variable_and_too_few_rows_say_nothing() -> None:
    random = np.random.default_rng(1)
    slower = np.linspace(1.0, 4.0, SAMPLES)
    found = noted(np.cumsum(20.0 * slower * random.exponential(1.0, SAMPLES))).scv
    assert close(found, 1.0)
    assert noted(np.arange(10.0)).scv == Scv(1.0, 0.0)
    assert ArrivalScv().scv == BatchArrivalScv().scv == ServiceScv().scv == Scv(1.0, 0.0)


@pytest.mark.parametrize(("rows_scv", "spans_scv"), [(0.5, 0.0), (0.0, 0.25), (0.25, 0.25)])
def test_arrivals_by_the_batch(rows_scv: float, spans_scv: float) -> None:
    random, estimate = np.random.default_rng(2), BatchArrivalScv()

    def varied(scv: float) -> float:
        return float(random.gamma(1.0 / scv, scv)) if scv else 1.0

    for _ in range(200):
        estimate.add(50.0 * varied(rows_scv), varied(spans_scv))
    truth = 50.0 * (rows_scv + spans_scv)
    assert abs(estimate.scv.value - truth) <= 3.0 * estimate.scv.error


def test_a_batch_that_took_long_to_come_and_is_as_large_varies_nothing() -> None:
    random, estimate = np.random.default_rng(2), BatchArrivalScv()
    for span_s in random.uniform(0.2, 3.0, 100):
        estimate.add(400.0 * span_s, span_s)
    assert estimate.scv.value == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("largest", [1, 8, 50])
def test_service_times_from_blocks(name: str, largest: int, seed: int) -> None:
    truth, draw = KNOWN[name]
    random, estimate = np.random.default_rng(seed), ServiceScv()
    sizes = random.integers(max(largest // 5, 1), largest + 1, SAMPLES)
    times_s = 0.002 * draw(random, int(sizes.sum()))
    for rows, block_s in zip(sizes, np.split(times_s, np.cumsum(sizes)[:-1]), strict=True):
        estimate.add(int(rows), float(block_s.sum()))
    assert close(estimate.scv, truth), estimate.scv
    assert abs(estimate.scv.value - truth) <= 5.0 * estimate.scv.error + 0.01


def test_a_machine_that_is_slow_now_and_then_does_not_make_rows_variable() -> None:
    random, estimate = np.random.default_rng(4), ServiceScv()
    for _ in range(SAMPLES):
        rows = int(random.integers(1, 200))
        slow = float(random.normal(1.0, 0.1))
        estimate.add(rows, slow * float(random.gamma(2.0, 0.001, rows).sum()))
    means = [random.gamma(2.0, 0.001, 100).sum() * random.normal(1.0, 0.1) for _ in range(2000)]
    assert np.var(means) / np.mean(means) ** 2 * 100 > 1.2, "the scv of means, times their rows"
    assert estimate.scv.value == pytest.approx(0.5, abs=0.15)


def test_even_blocks_on_a_noisy_machine_say_that_they_do_not_know() -> None:
    random, estimate = np.random.default_rng(4), ServiceScv()
    for _ in range(SAMPLES):
        slow = float(random.normal(1.0, 0.05))
        estimate.add(500, slow * float(random.gamma(1000.0, 0.001)))
    assert estimate.scv.value <= 1.0
    assert abs(estimate.scv.value - 0.5) <= estimate.scv.error
