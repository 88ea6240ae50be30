"""A network of operators as in DRS: which operator sends how many tuples where (fig. 2)."""

from dataclasses import dataclass

SOURCE = "source"
"""The name that an edge's `from` uses for tuples from outside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One operator: the service rate of a core, and the variability of arrivals and services."""

    name: str
    service_rate: float
    """Tuples that one core completes per second (mu)."""
    arrival_scv: float = 1.0
    """Squared coefficient of variation of the times between arrivals (c_a^2)."""
    service_scv: float = 1.0
    """Squared coefficient of variation of the service times (c_s^2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A stream from `source` or an operator to an operator."""

    origin: str
    target: str
    ratio: float = 1.0
    """Tuples emitted along this edge per tuple processed at the origin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Operators, the edges between them, and the external arrival rate."""

    rate: float
    """External tuples per second (lambda_0)."""
    operators: tuple[Operator, ...]
    edges: tuple[Edge, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Operator names, in the order that all vectors over this network use."""
        return tuple(operator.name for operator in self.operators)
