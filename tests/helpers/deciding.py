"""A policy with its model and bounds, to test decisions without a controller."""

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.control.assemble import new_shedder
from tidegate.control.bounds import Bounds
from tidegate.control.constraints import Constraints
from tidegate.control.decision import Decision
from tidegate.control.latency.options import LatencyOptions
from tidegate.control.latency.policy import LatencyPolicy
from tidegate.control.learning.pipeline_model import PipelineModel
from tidegate.control.measurement import Measurement
from tidegate.control.names import DEFAULT_SHEDDER
from tidegate.control.policy import Policy
from tidegate.control.shedding.classes import Worth
from tidegate.control.shedding.policy import SheddingPolicy
from tidegate.control.shedding.shedder import Shedder
from tidegate.control.target import Target


@dataclass
class Deciding:
    """Learns and decides, as a controller does in a tick."""

    policy: Policy
    bounds: Bounds
    model: PipelineModel
    shedder: Shedder | None = None

    @property
    def name(self) -> str:
        return self.policy.name

    @property
    def beliefs(self) -> dict[str, float]:
        return self.policy.beliefs  # type: ignore[attr-defined]

    def decide(self, measurement: Measurement, share: int | None = None) -> Decision:
        self.model.learn(measurement)
        return self.policy.decide(measurement, Constraints(self.bounds, share))


def plain(policy: Policy, bounds: Bounds) -> Deciding:
    """Wrap a policy that needs no model."""
    return Deciding(policy, bounds, PipelineModel())


def latency_policy(
    target_s: float,
    bounds: Bounds,
    options: LatencyOptions | None = None,
    *,
    percentile: int | None = None,
) -> Deciding:
    model = PipelineModel()
    return Deciding(LatencyPolicy(Target(target_s, percentile), model, options), bounds, model)


def shedding_policy(
    inner: Policy,
    *,
    target_s: float,
    bounds: Bounds,
    options: LatencyOptions | None = None,
    classes: Mapping[str, Worth] | None = None,
) -> Deciding:
    model = PipelineModel()
    shedder = new_shedder(DEFAULT_SHEDDER, target_s)
    policy = SheddingPolicy(
        inner,
        shedder,
        target=Target(target_s),
        model=model,
        grant_s=(options or LatencyOptions()).grant_s,
        classes=classes,
    )
    return Deciding(policy, bounds, model, shedder)
