"""A network of operators as DRS sees it: who sends how many tuples to whom (fig. 2)."""

from dataclasses import dataclass

SOURCE = "source"
"""The name of the outside world in an edge's `from`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One operator: how fast one core is, and how irregular arrivals and services are."""

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
    """Operators, the edges between them, and the rate of tuples from outside."""

    rate: float
    """External tuples per second (lambda_0)."""
    operators: tuple[Operator, ...]
    edges: tuple[Edge, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Operator names, in the order that every vector over this network has."""
        return tuple(operator.name for operator in self.operators)
