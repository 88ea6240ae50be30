"""What a controller is assembled from: the same on Spark, in the simulator and in a replay.

The first record of a run holds it as a document, so that the run can be replayed.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from tidegate.control.bounds import Bounds
from tidegate.control.capacity_options import LEARN_NOTHING
from tidegate.control.drs_options import drs_options
from tidegate.control.latency.options import LatencyOptions
from tidegate.control.limits import Limits, excluded_periods
from tidegate.control.names import DEFAULT_POLICY, policy_name
from tidegate.control.policy_text import split_policy
from tidegate.control.shedding.classes import ClassWorth, Worth
from tidegate.control.target import Target
from tidegate.errors import AskedWrongly
from tidegate.models.capacity.measured import MeasuredCapacity


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """Everything that a controller is built from."""

    target: Target
    bounds: Bounds
    policy: str = DEFAULT_POLICY
    """Its name, with its options in brackets: `drs(model=gigk)`."""
    capacity: MeasuredCapacity | None = None
    """What the pipeline was measured to process, for policies that plan by it."""
    latency: LatencyOptions = field(default_factory=LatencyOptions)
    limits: Limits = field(default_factory=Limits)
    tick_s: float = 1.0
    cores_per_executor: int = 1
    cores: int | None = None
    """Cores of the policies `static` and `drs-fixed`; None: the maximum."""
    shed: str | None = None
    """The shedder that wraps the policy; None: rows are shed only by hand."""
    shed_backlog: bool = False
    """Whether rows of a backlog are shed like others; if not, a backlog is drained."""
    classes: Mapping[str, Worth] = field(default_factory=dict)
    """What the classes of rows are worth."""

    def __post_init__(self) -> None:
        drs_options(self.policy).t_min_below(self.target.latency_s)
        name, _ = split_policy(policy_name(self.policy))
        if name in LEARN_NOTHING and self.capacity is None:
            learning = f"mst-{int(name.removeprefix('mst-')) + 2}"
            raise AskedWrongly(
                f"policy {name} does not learn what cores can process; give a capacity file, or"
                f" take {learning}, which is the same with online learning"
            )
        if self.capacity is not None:
            self.capacity.refuse_overhead(self.target.mean_s)

    def document(self) -> dict[str, Any]:
        """The assembly as plain JSON values, for a record."""
        limits = {**asdict(self.limits), "excluded": [str(one) for one in self.limits.excluded]}
        worths = {
            name: {"priority": one.priority, "weight": one.weight, "floor": one.floor}
            for name, one in self.classes.items()
        }
        plain = {
            name: getattr(self, name)
            for name in ("policy", "tick_s", "cores_per_executor", "cores", "shed", "shed_backlog")
        }
        return {
            "target": asdict(self.target),
            "bounds": asdict(self.bounds),
            "latency": asdict(self.latency),
            "limits": limits,
            "classes": worths,
            "capacity": None if self.capacity is None else self.capacity.document(),
            **plain,
        }

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "Assembly":
        """The reverse of `document`."""
        limits, capacity = dict(document["limits"]), document.get("capacity")
        return cls(
            **{
                **document,
                "target": Target(**document["target"]),
                "bounds": Bounds(**document["bounds"]),
                "latency": LatencyOptions(**document["latency"]),
                "limits": Limits(**{**limits, "excluded": excluded_periods(limits["excluded"])}),
                "classes": {name: ClassWorth(**one) for name, one in document["classes"].items()},
                "capacity": None if capacity is None else MeasuredCapacity.of(capacity),
            }
        )
