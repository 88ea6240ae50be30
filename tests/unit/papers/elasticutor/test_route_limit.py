"""The most that a route per batch can gain."""

import numpy as np
import pytest

from tidegate.apps.paradigms import route_anew
from tidegate.control.shards.balance import imbalance
from tidegate.papers.elasticutor.route_limit import ShuffledKeys, least_delta
from tidegate.papers.elasticutor.skews import static_delta

KEYS = ShuffledKeys(skew=0.87, tasks=24, batch_s=0.5, shards=256, fixed_s=0.0, seconds=40.0)


def test_without_shuffles_it_is_the_gain_in_delta() -> None:
    gains = KEYS.mean_gains(0.0, 4)
    assert 1.3 < static_delta(0.87, 24, 256) / gains.known < 1.6, "the hottest shard bounds it"
    assert gains.learned == pytest.approx(gains.known, rel=0.05), "nothing new has to be learned"


def test_shuffles_cost_only_those_who_learn_from_the_batch_before() -> None:
    calm, often = KEYS.mean_gains(4.0, 3), KEYS.mean_gains(64.0, 3)
    assert often.learned < calm.learned < calm.known
    assert often.known > 1.3
    slow = ShuffledKeys(skew=0.87, tasks=24, batch_s=0.5, shards=256, fixed_s=1.0, seconds=40.0)
    assert slow.gains(0.0).known < KEYS.gains(0.0).known, "no route changes the fixed cost"


def test_no_route_beats_the_bound_and_one_reaches_it() -> None:
    random = np.random.default_rng(2)
    for _ in range(20):
        shares = random.permutation(np.arange(1.0, 257.0) ** -random.uniform(0.3, 1.2))
        rows = random.multinomial(12_000, shares / shares.sum())
        found = imbalance(rows, route_anew(rows, 24), 24)
        assert least_delta(rows, 24) <= found <= 1.04 * least_delta(rows, 24)


def test_even_keys_gain_little() -> None:
    even = ShuffledKeys(skew=0.0, tasks=4, batch_s=0.5, shards=256, fixed_s=0.1, seconds=20.0)
    gains = even.gains(4.0)
    assert gains.known == pytest.approx(1.0, abs=0.06) and gains.learned < 1.06
