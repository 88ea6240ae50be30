"""Policies for a pipeline by the name a person selects them with."""

from tidegate.control.allocation.drs import Drs, DrsFixed
from tidegate.control.baselines.dynamic_allocation import DynamicAllocation
from tidegate.control.baselines.fixed import StaticPeak
from tidegate.control.baselines.hpa import UtilisationThreshold
from tidegate.control.baselines.on_pipeline import OnPipeline
from tidegate.control.capacity.cycle import Bounds
from tidegate.control.flow.policy import FlowPolicy
from tidegate.control.latency.policy import LatencyOptions, LatencyPolicy
from tidegate.control.policy import Policy
from tidegate.errors import AskedWrongly, nearest

PIPELINE_POLICIES = (
    "tidegate",
    "drs",
    "drs-fixed",
    "flow",
    "threshold",
    "spark-dynamic-allocation",
    "static",
)


def pipeline_policy(
    name: str,
    *,
    target_s: float,
    bounds: Bounds,
    options: LatencyOptions | None = None,
    cores: int | None = None,
    tick_s: float = 1.0,
) -> Policy:
    """The policy of this name; `cores` is for `static` and `drs-fixed` (default: the maximum).

    The threshold is Kubernetes' (every 15 s, fewer only after five minutes) with its window cut to
    one minute, so that a run of minutes sees it let go at all. Dynamic allocation looks every
    second, as Spark's backlog timeout does.
    """
    fixed = bounds.most if cores is None else bounds.clamp(cores)
    if name == "tidegate":
        return LatencyPolicy(target_s, bounds, options)
    if name == "drs":
        return Drs(target_s, 0.45 * target_s, bounds)
    if name == "drs-fixed":
        return DrsFixed(fixed)
    if name == "flow":
        latency = options or LatencyOptions()
        return FlowPolicy(
            target_s,
            bounds,
            catch_up_s=latency.catch_up_s,
            scale_in_after_s=latency.scale_in_after_s,
            settle_s=2.0 * tick_s,
        )
    if name == "threshold":
        inner = UtilisationThreshold(bounds, stabilisation_minutes=max(round(60 / 15), 1))
        return OnPipeline(inner, every_s=max(15.0, tick_s), name=name)
    if name == "spark-dynamic-allocation":
        return OnPipeline(DynamicAllocation(bounds), every_s=tick_s)
    if name == "static":
        return OnPipeline(StaticPeak(fixed), every_s=tick_s, name=name)
    raise AskedWrongly(f"there is no policy '{name}'{nearest(name, PIPELINE_POLICIES)}")
