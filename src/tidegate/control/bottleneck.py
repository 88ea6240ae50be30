"""The operator that limits a pipeline, as a record describes it.

`control/flow/bottleneck.py` finds it, whichever policy runs.
"""

from dataclasses import dataclass

from tidegate.models.flow.limiting import LIMITING

LIMITING_LOAD = LIMITING
"""An operator with at least this load limits the pipeline (Flink-ER eq. 11)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottleneck:
    """The operator that needs another task first, if the pipeline is to carry more."""

    operator: str
    segment: str
    tasks: int
    load: float
    """f / c: the offered rate over the rate that it can carry; above 1 a backlog grows."""
    gain: float
    """How much more the pipeline could carry with one more task of it (0.22: 22 %)."""
    capacity_rate: float
    """Rows per second from outside that the pipeline can carry as it is."""
    may_grow: bool = True
    """Whether the operator's limits allow it one more task."""
    beside: tuple[str, ...] = ()
    """First operators behind other cuts that limit as well (f >= 0.85 c)."""

    @property
    def limits(self) -> bool:
        """Whether it limits the pipeline now (Flink-ER eq. 11), or would only be the first to."""
        return self.load >= LIMITING_LOAD

    @property
    def words(self) -> str:
        """The bottleneck in one sentence for a person."""
        its = "its task" if self.tasks == 1 else f"its {self.tasks} tasks"
        how = f"rows come at {_percent(self.load)} of the rate that {its} can process"
        more = f"with one more task the pipeline could process {_percent(self.gain)} more"
        if not self.may_grow:
            more += ", but it may have no more"
        if self.limits:
            return f"`{self.operator}` limits the pipeline: {how}; {more}"
        return f"`{self.operator}` would be the first to limit the pipeline: {how}; {more}"


def _percent(share: float) -> str:
    return f"{100.0 * share:.0f} %"
