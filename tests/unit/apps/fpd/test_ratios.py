"""How many rows each operator makes of one row: near what `examples/fpd.toml` models."""

import numpy as np

from tests.unit.apps.fpd.by_hand import ByHand
from tidegate.apps.fpd.options import FpdOptions
from tidegate.apps.fpd.tweets import Tweets
from tidegate.apps.fpd.window import Changes

ROWS_A_BATCH = 320


def test_ratios_are_near_the_modelled_ones() -> None:
    options = FpdOptions()
    tweets = Tweets.of_window(options.window, seed=1)
    words = [
        tuple(word for word in row if word < tweets.vocabulary)
        for row in tweets.words(np.arange(8000)).tolist()
    ]
    changes = Changes.of(np.arange(11_000), options.window)
    events = sorted(
        [(at, 1, words[number]) for number, at in enumerate(changes.entering_ms)]
        + [(at, -1, words[number]) for number, at in enumerate(changes.leaving_ms)]
    )
    run = ByHand(options.threshold, options.largest)
    before = (0, 0, 0, 0)
    for first in range(0, len(events), ROWS_A_BATCH):
        run.batch([(sign, one) for _, sign, one in events[first : first + ROWS_A_BATCH]])
        if first < options.window:  # the window is not full yet
            before = (run.generated, run.detected, run.told, len(run.changes))
            rows = len(events) - first - ROWS_A_BATCH
    now = (run.generated, run.detected, run.told, len(run.changes))
    generated, detected, told, changed = np.subtract(now, before)
    assert 3.6 < generated / rows < 4.4
    assert 0.04 < told / detected < 0.07
    assert 0.08 < changed / detected < 0.12
