"""A queueing station on cores of several speeds (DRS III-A says that its models extend to them).

Cores of class c complete s_c mu tuples per second. While every core is busy the station completes
mu sum_c k_c s_c tuples per second, as many as k cores of the mean speed. The model is M/M/k (or
GI/G/k) with that mean speed, so it is exact while tuples wait. It is approximate only while some
cores are idle: which ones are idle depends on how tuples are assigned, and the model assumes the
shares of work of a busy station. Nothing calls this yet: the DRS policies will, on clusters whose
machines differ in speed.
"""

from dataclasses import dataclass

from tidegate.errors import AskedWrongly
from tidegate.models.queueing.erlang import station_delay


@dataclass(frozen=True, slots=True)
class CoreClass:
    """Cores of one speed."""

    speed: float
    """Factor on the service rate: 2 completes twice as many tuples per second."""
    cores: int
    """How many of these cores the station can have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedCoreStation:
    """One operator whose k-th core is the fastest one left.

    Adding a slow core helps while tuples wait and hurts once they do not, so the latency can rise
    again with k; allocators stop where it does.
    """

    arrival_rate: float
    service_rate: float
    """Tuples per second of a core of speed 1."""
    classes: tuple[CoreClass, ...]
    variability: float = 1.0
    visit_ratio: float = 1.0

    def __post_init__(self) -> None:
        if not self.classes or any(c.speed <= 0.0 or c.cores < 0 for c in self.classes):
            raise AskedWrongly("core classes need a speed above 0 and at least 0 cores each")
        if self.arrival_rate >= self.service_rate * self.speed(self.most):
            raise AskedWrongly(
                f"all {self.most} cores together complete"
                f" {self.service_rate * self.speed(self.most):g} tuples per second, but"
                f" {self.arrival_rate:g} arrive; give the station more or faster cores"
            )

    @property
    def most(self) -> int:
        """The number of all cores."""
        return sum(one.cores for one in self.classes)

    def speed(self, cores: int) -> float:
        """Summed speed of the `cores` fastest cores."""
        total = 0.0
        left = cores
        for one in sorted(self.classes, key=lambda one: -one.speed):
            taken = min(left, one.cores)
            total += taken * one.speed
            left -= taken
        return total if left == 0 else float("nan")

    @property
    def stable_from(self) -> int:
        """The smallest stable number of cores, fastest first."""
        cores = 1
        while self.service_rate * self.speed(cores) <= self.arrival_rate:
            cores += 1
        return cores

    def latency(self, cores: int) -> float:
        """E[T](k) in seconds on the k fastest cores; not a number beyond `most`."""
        rate = self.service_rate * self.speed(cores) / cores
        wait = self.variability * station_delay(float(cores), self.arrival_rate / rate)
        return (wait + 1.0) / rate
