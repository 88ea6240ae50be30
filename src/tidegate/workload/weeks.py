"""Generated weeks of load; three of them are shaped like the weeks in the MST paper (fig. 5).

Each is a pure function of its seed: 10,080 counts, one per minute. They reproduce what makes those
weeks hard, not their values: match days that rise tenfold within minutes, scheduled bursts, gaps in
the collected data, and smooth days with noise. The fourth is a service whose users come to work.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Vector = NDArray[np.float64]

DAY = 24 * 60
WEEK = 7 * DAY


def worldcup_like(seed: int = 0) -> Vector:
    """A daily cycle, and matches on most days that rise within half an hour and last two hours."""
    rng = np.random.default_rng([seed, 1])
    minute = np.arange(WEEK)
    daily = 1.0 + 0.45 * np.sin(2 * np.pi * (minute % DAY - 9.5 * 60) / DAY)
    load = 12_000 * daily * _drift(rng, 0.10, 240)
    for day in range(7):
        for kick_off in (14.5, 19.0):
            if rng.random() < 0.35:
                continue
            begin = day * DAY + kick_off * 60 + rng.normal(0, 4)
            height = rng.lognormal(np.log(7.0), 0.45)
            rise = expit((minute - begin) / rng.uniform(6, 14))
            fall = expit((begin + rng.uniform(105, 135) - minute) / rng.uniform(10, 25))
            half_time = 1 - 0.25 * np.exp(-0.5 * ((minute - begin - 52) / 8) ** 2)
            load = load * (1 + height * rise * fall * half_time)
    return _counts(rng, load * np.exp(0.045 * rng.standard_normal(WEEK)))


def tweets_like(seed: int = 0) -> Vector:
    """A daily cycle, scheduled bursts of three to five times the load, and gaps in the data."""
    rng = np.random.default_rng([seed, 2])
    minute = np.arange(WEEK)
    daily = 1.0 + 0.3 * np.sin(2 * np.pi * (minute % DAY - 10 * 60) / DAY)
    load = 3_200 * daily * _drift(rng, 0.06, 180)
    at = float(rng.integers(2, 5)) * 30
    while at < WEEK - 30:
        begin = int(at + rng.choice([1, 2, 2, 2, 3]))
        length = int(rng.integers(7, 11))
        height = rng.uniform(2.3, 3.8)
        for step, share in enumerate((0.5, *([1.0] * length), 0.5, 0.2)):
            if begin + step < WEEK:
                load[begin + step] *= 1 + height * share
        at += 30.0 * float(rng.choice([2, 3, 4, 4, 4, 5, 5]))
    counts = _counts(rng, load * np.exp(0.04 * rng.standard_normal(WEEK)))
    for _ in range(6):
        begin = int(rng.integers(DAY // 2, WEEK - 60))
        counts[begin : begin + int(rng.integers(20, 45))] = 0.0
    return counts


def flights_like(seed: int = 0) -> Vector:
    """Smooth days between 55 and 100 % of the peak, lower at the weekend, with little noise."""
    rng = np.random.default_rng([seed, 3])
    minute = np.arange(WEEK)
    phase = 2 * np.pi * (minute % DAY - 8 * 60) / DAY
    daily = 1.0 + 0.22 * np.sin(phase) + 0.06 * np.sin(2 * phase + 0.7)
    weekend = np.where(minute // DAY >= 5, 0.93, 1.0)
    load = 50_000 * daily * weekend * _drift(rng, 0.02, 240)
    return _counts(rng, load * np.exp(0.012 * rng.standard_normal(WEEK)))


def office_like(seed: int = 0) -> Vector:
    """Quiet nights, an opening at nine that doubles the load in minutes, and calmer weekends."""
    rng = np.random.default_rng([seed, 4])
    minute = np.arange(WEEK)
    hour = (minute % DAY) / 60
    daily = 0.35 + 0.35 * expit((hour - 7.5) / 0.6) * expit((21.5 - hour) / 0.8)
    daily += 0.25 * np.exp(-0.5 * ((hour - 20.0) / 0.9) ** 2)
    office = expit((hour - 9.0) * 60 / 1.2) * expit((17.5 - hour) * 60 / 15.0)
    lunch = 1 - 0.2 * np.exp(-0.5 * ((hour - 12.6) / 0.35) ** 2)
    weekday = np.where(minute // DAY < 5, 1.0, 0.25)
    weekend = np.where(minute // DAY < 5, 1.0, 0.85)
    load = 60_000 * (daily * weekend + 0.75 * office * lunch * weekday) * _drift(rng, 0.04, 180)
    return _counts(rng, load * np.exp(0.015 * rng.standard_normal(WEEK)))


WEEKS = {
    "worldcup-like": worldcup_like,
    "tweets-like": tweets_like,
    "flights-like": flights_like,
    "office-like": office_like,
}
"""The generated weeks by name."""


def _drift(rng: np.random.Generator, size: float, correlation_minutes: float) -> Vector:
    """A slow drift around 1: autoregressive in the logarithm."""
    keep = np.exp(-1 / correlation_minutes)
    steps = rng.standard_normal(WEEK) * size * np.sqrt(1 - keep**2)
    level = np.empty(WEEK)
    value = size * rng.standard_normal()
    for minute in range(WEEK):
        value = keep * value + steps[minute]
        level[minute] = value
    return np.exp(level)


def _counts(rng: np.random.Generator, load: Vector) -> Vector:
    return rng.poisson(load).astype(np.float64)
