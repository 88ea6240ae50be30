"""What a pipeline says of itself to those it shares the application's cores with."""

from dataclasses import dataclass

from tidegate.models.microbatch.batch_cost import BatchCost


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedLoad:
    """The load of a pipeline and what it costs, as one micro-batch station."""

    target_s: float
    """The mean latency that its target stands for."""
    arrival_rate: float
    cost: BatchCost


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a pipeline holds and needs."""

    cores: int
    """Cores it has asked for."""
    load: ClaimedLoad | None = None
    """None while its costs are unknown: it then claims an even share."""

    def kept(self, cores: int) -> float:
        """The share of its rows that it keeps on target with so many cores: tau(T) / lambda."""
        if self.load is None:
            return 1.0
        return self.load.cost.kept(self.load.arrival_rate, cores, self.load.target_s)
