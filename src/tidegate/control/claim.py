"""What a pipeline reports about itself, so that the application's cores can be divided."""

from dataclasses import dataclass

from tidegate.models.microbatch.batch_cost import BatchCost


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedLoad:
    """The load of a pipeline and its cost, with the whole pipeline as one micro-batch station."""

    target_s: float
    """The target, converted to a mean latency."""
    arrival_rate: float
    cost: BatchCost


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The cores that a pipeline holds, and the load that it needs cores for."""

    cores: int
    """Cores it has asked for."""
    load: ClaimedLoad | None = None
    """None while its costs are unknown: it then claims an even share."""

    def kept(self, cores: int) -> float:
        """The share of its rows that it can keep on target on so many cores: tau(T) / lambda."""
        if self.load is None:
            return 1.0
        return self.load.cost.kept(self.load.arrival_rate, cores, self.load.target_s)
