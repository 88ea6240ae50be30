"""When rows are counted before they are routed: only where hot keys change too often."""

import dataclasses

import numpy as np

from tests.unit.control.shards.test_balance import measured
from tidegate.control.decision import hold
from tidegate.control.measurement import Measurement
from tidegate.control.shards.balance import balance, imbalance
from tidegate.control.shards.balancer import Balancer
from tidegate.control.shards.preview import BATCHES, FIRST_COST_S
from tidegate.control.shards.route import Route, even_route, rerouted

SHARDS, TASKS, ROWS = 64, 8, 4_000
_SHARES = np.arange(1.0, SHARDS + 1.0) ** -0.9


class World:
    """Batches whose hot shards change every few of them, behind the real balancer."""

    def __init__(self, every: int, work_s: float = 8.0, preview_s: float = 0.1) -> None:
        self.balancer = Balancer()
        self.route: Route = even_route(SHARDS, TASKS)
        self.preview: bool | None = False
        self.said: list[str] = []
        self.deltas: list[float] = []
        self._every, self._work_s, self._preview_s = every, work_s, preview_s
        self._random = np.random.default_rng(3)
        self._shares = _SHARES
        self._number = 0

    def batch(self) -> None:
        """Run one micro-batch, then let the balancer decide."""
        if self._every and self._number % self._every == 0:
            self._shares = self._random.permutation(_SHARES)
        self._number += 1
        rows = self._random.multinomial(ROWS, self._shares / self._shares.sum()).tolist()
        took_s = None
        if self.preview:
            took_s = self._preview_s
            self._reroute(rows)
        self.deltas.append(imbalance(rows, self.route, TASKS))
        decision = self.balancer.balanced(hold("calm"), self._measured(rows, took_s))
        self.route = rerouted(self.route, decision.moves.get("count", {}), TASKS)
        if decision.preview:
            self.preview = decision.preview["count"]
            self.said.append(decision.reason)

    def _reroute(self, rows: list[int]) -> None:
        self.route = rerouted(self.route, balance(rows, self.route, TASKS).moves, TASKS)

    def _measured(self, rows: list[int], took_s: float | None) -> Measurement:
        plain = measured(rows, self.route, TASKS, float(self._number))
        operator = dataclasses.replace(
            plain.operators[0], busy_s=self._work_s, preview=self.preview, preview_s=took_s
        )
        return dataclasses.replace(plain, operators=(operator,))


def test_calm_keys_are_not_previewed_although_the_first_route_was_bad() -> None:
    world = World(every=0)
    for _ in range(60):
        world.batch()
    assert world.deltas[0] > 1.5, "the even route does not suit skewed keys"
    assert not world.preview and world.said == []


def test_keys_that_change_often_are_previewed_and_no_batch_is_uneven_then() -> None:
    world = World(every=3)
    for _ in range(60):
        world.batch()
    assert world.preview and len(world.said) == 1, "it does not go on and off"
    assert "its hot keys change so often" in world.said[0]
    assert max(world.deltas[30:]) < 0.75 * max(world.deltas[:8])


def test_previews_end_when_the_keys_are_calm_again() -> None:
    world = World(every=3)
    for _ in range(30):
        world.batch()
    assert world.preview
    world._every = 0
    for _ in range(6 * BATCHES):
        world.batch()
    assert not world.preview and "no longer counting" in world.said[-1]


def test_previews_end_when_one_task_is_left() -> None:
    """There is nothing to route any more, so counting saves nothing."""
    world = World(every=3)
    for _ in range(30):
        world.batch()
    assert world.preview
    decisions = []
    for number in range(6 * BATCHES):
        seen = world._measured([ROWS // SHARDS] * SHARDS, 0.1)
        alone = dataclasses.replace(seen.operators[0], tasks=1, route=even_route(SHARDS, 1))
        seen = dataclasses.replace(seen, at_s=100.0 + number, operators=(alone,))
        decisions.append(world.balancer.balanced(hold("calm"), seen).preview)
    assert {"count": False} in decisions


def test_a_preview_that_takes_longer_than_it_saves_ends() -> None:
    world = World(every=3, preview_s=5.0)
    for _ in range(60):
        world.batch()
    assert not world.preview and len(world.said) == 2, "tried once, and not again"


def test_what_previews_take_is_learned_from_the_first_ones() -> None:
    """A batch with twelve operators is planned for longer than one is thought to be."""
    world = World(every=3, work_s=32.0, preview_s=2.0)
    previewed = 0
    for _ in range(30):
        previewed += bool(world.preview)
        world.batch()
    assert 0 < previewed <= 4


def test_short_batches_are_not_worth_a_preview() -> None:
    world = World(every=3, work_s=TASKS * FIRST_COST_S)
    for _ in range(60):
        world.batch()
    assert not world.preview


def test_without_the_means_nothing_is_decided() -> None:
    world = World(every=3)
    world.preview = None
    for _ in range(20):
        world.batch()
    assert world.preview is None and world.said == []
