"""A short week, and scores that no run had to be made for."""

from pathlib import Path

import numpy as np

from tidegate.sim.capacity.backtest import FEWEST_ROWS, Score


def trace(rows: int = FEWEST_ROWS + 88) -> np.ndarray:
    """A load that rises and falls, with noise: the same every time."""
    minute = np.arange(rows)
    noise = np.random.default_rng(3).normal(0.0, 20.0, rows)
    return np.round(1000.0 + 400.0 * np.sin(minute / 25.0) + noise)


def written(directory: Path, name: str, counts: np.ndarray) -> str:
    """The file of a trace."""
    lines = [f"{minute},{count:g}" for minute, count in enumerate(counts)]
    file = directory / f"{name}.csv"
    file.write_text("\n".join(["minute,count", *lines]), encoding="utf-8")
    return str(file)


def scored(
    qos: float, cost: float, *, policy: str = "0:MST", app: str = "grep", seed: int = 0
) -> Score:
    """The score of a run; its cost relative to the static peak is a third of that to the truth."""
    return Score(
        app=app,
        policy=policy,
        seed=seed,
        qos=qos,
        cost_vs_truth=cost,
        cost_vs_peak=cost / 3.0,
        max_backlog=0.0,
        scalings=1,
        billed_vs_truth=cost,
    )
