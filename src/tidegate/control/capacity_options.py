"""The options of MST's policies and the priced policy on a pipeline, written behind the name.

`mst-7(cycle=10s, qos=0.95, startup=2s)`: see `control/policy_text.py`. The paper counts in steps of
a minute, with a cycle of S = 10 steps and machines that start within U = 2 (II-C). On a pipeline
the cycle may be seconds. A step is a tenth of it, but at least a tick.
"""

import math
from dataclasses import dataclass, fields
from typing import Any

from tidegate.control.policy_text import number_of, split_policy, written_options
from tidegate.errors import AskedWrongly
from tidegate.units import exact_duration, parse_duration

MST = tuple(f"mst-{number}" for number in range(8))
"""Table III's policies, by their numbers."""
PRICED = "priced-capacity"
PRICED_BY_CYCLE = "priced-capacity-cycle"
POLICIES = (*MST, PRICED, PRICED_BY_CYCLE)
LEARN_NOTHING = ("mst-0", "mst-1", "mst-4", "mst-5")
"""The policies without online learning (table III), which need a measured capacity."""
STEPS = 10
"""Steps in a cycle: the paper's S is ten minutes."""
STARTUP_SHARE = 0.2
"""U as a share of S: the paper's two of ten minutes."""
_NAMES = ("cycle", "qos", "startup")
_AT_ONCE = ("mst-0", "mst-1", "mst-2", "mst-3")
"""The policies without a forecast (table III). They plan when a cycle begins, so nothing starts
before it."""
_WITHOUT_CHANCES = ("mst-0", "mst-2")
"""Those of them without uncertainty, which take eq. 4 as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityOptions:
    """S, U and rho of the MST paper, for a pipeline."""

    cycle_s: float = 10.0
    """S: how often cores are planned. `priced-capacity` plans at every step of it."""
    qos: float = 0.95
    """rho: the probability with which the cores are to be enough, from 0.5 to below 1."""
    startup_s: float | None = None
    """U: how long before its cycle a plan is made; None: a fifth of the cycle."""

    def __post_init__(self) -> None:
        if self.startup_s is not None and self.startup_s >= self.cycle_s:
            raise AskedWrongly(
                f"startup={exact_duration(self.startup_s)}, but the cycle is"
                f" {exact_duration(self.cycle_s)}; give a longer cycle, such as five times the"
                " time that cores take to start"
            )

    def __str__(self) -> str:
        shown = []
        for one in fields(self):
            value = getattr(self, one.name)
            if value != one.default:
                duration = one.name.endswith("_s")
                name = one.name.removesuffix("_s")
                shown.append(f"{name}={exact_duration(value) if duration else value}")
        return ", ".join(shown)

    def step_s(self, tick_s: float) -> float:
        """The length of a step."""
        return max(self.cycle_s / STEPS, tick_s)

    def steps(self, tick_s: float) -> int:
        """S in steps."""
        return max(round(self.cycle_s / self.step_s(tick_s)), 1)

    def startup_steps(self, tick_s: float) -> int:
        """U in steps; it is below S."""
        startup_s = STARTUP_SHARE * self.cycle_s if self.startup_s is None else self.startup_s
        steps = math.ceil(startup_s / self.step_s(tick_s) - 1e-9)
        return min(steps, self.steps(tick_s) - 1)


def capacity_options(policy: str) -> CapacityOptions:
    """The options behind a policy's name; a wrong one is refused in a sentence.

    A policy of another kind has the defaults, which nobody reads.
    """
    name, _ = split_policy(policy)
    if name not in POLICIES:
        return CapacityOptions()
    found: dict[str, Any] = {}
    for key, text in written_options(policy, _options_of(name)).items():
        if key == "qos":
            what = "a probability from 0.5 to below 1"
            found[key] = number_of(policy, key, text, float, lambda qos: 0.5 <= qos < 1.0, what)
        else:
            found[f"{key}_s"] = parse_duration(text)
    return CapacityOptions(**found)


def _options_of(name: str) -> tuple[str, ...]:
    """The options that change what a policy does; others are refused."""
    unused = {"startup"} if name in _AT_ONCE else set()
    unused |= {"qos"} if name in _WITHOUT_CHANCES else set()
    return tuple(option for option in _NAMES if option not in unused)
