"""Milliseconds per ARMA fit, against statsmodels on the same windows in the same run."""

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from statsmodels.tsa.arima.model import ARIMA

from tidegate.benching import Bench, Options, at_least, at_most
from tidegate.forecast.arma import ArmaFitter

ORDERS = [(1, 0), (1, 1), (1, 2), (2, 1), (3, 3)]
"""The orders of the MST paper's table I and their neighbours, and the largest of its grid."""
WINDOW = 100


def run(options: Options) -> Bench:
    """Time single orders against statsmodels, then the whole grid of 16 orders alone."""
    windows = [_window(seed) for seed in range(2 if options.quick else 8)]
    ArmaFitter().fit_all(windows[0])  # compiles
    results = []
    worst_speedup = np.inf
    worst_shortfall = 0.0
    options.progress.expect(len(ORDERS) + 1)
    for order in ORDERS:
        options.progress.step(f"ARMA{order}, ours and statsmodels'")
        ours_ms, ours = _timed(lambda x, o=order: ArmaFitter(o).fit(x, o), windows)
        theirs_ms, theirs = _timed(lambda x, o=order: _statsmodels(x, o), windows)
        shortfall = max(t - o.log_likelihood for o, t in zip(ours, theirs, strict=True))
        worst_speedup = min(worst_speedup, theirs_ms / ours_ms)
        worst_shortfall = max(worst_shortfall, shortfall)
        results.append(
            {
                "order": f"ARMA{order}",
                "tidegate_ms": ours_ms,
                "statsmodels_ms": theirs_ms,
                "times_faster": theirs_ms / ours_ms,
                "most_log_likelihood_missed": shortfall,
            }
        )
    options.progress.step("all 16 orders, sliding window")
    fitter = ArmaFitter()
    series = _window(99, WINDOW + 10 * len(windows) * 4)
    slides = [series[i : i + WINDOW] for i in range(0, series.size - WINDOW, 10)]
    grid_ms, _ = _timed(fitter.fit_best, slides)
    results.append({"order": "best of 16, sliding", "tidegate_ms": grid_ms})
    return Bench(
        "forecast",
        results,
        [
            at_least("times faster than statsmodels, slowest order", worst_speedup, 20),
            at_most("log-likelihood below statsmodels', worst fit", worst_shortfall, 1.0),
        ],
    )


def _window(seed: int, length: int = WINDOW) -> NDArray[np.float64]:
    """A load like that of a web site: a slow random walk in the logarithm, with counting noise."""
    rng = np.random.default_rng(seed)
    level = 10_000 * np.exp(np.cumsum(0.01 * rng.standard_normal(length)))
    return rng.poisson(level).astype(np.float64)


def _timed(
    fit: Callable[[NDArray[np.float64]], Any], windows: list[NDArray[np.float64]]
) -> tuple[float, list[Any]]:
    """Median milliseconds of CPU time per window, and the results.

    CPU time of this thread, so that other work on the machine favours neither side.
    """
    times, answers = [], []
    for window in windows:
        start = time.thread_time()
        answers.append(fit(window))
        times.append(1e3 * (time.thread_time() - start))
    return float(np.median(times)), answers


def _statsmodels(x: NDArray[np.float64], order: tuple[int, int]) -> float:
    """The log-likelihood that statsmodels finds for standardised values, which it fits fastest."""
    scale = float(x.std())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = ARIMA((x - x.mean()) / scale, order=(order[0], 0, order[1]), trend="c").fit()
    return float(fitted.llf) - x.size * float(np.log(scale))
