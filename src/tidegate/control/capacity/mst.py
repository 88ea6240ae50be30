"""The MST paper's policies 0 to 7 (table III): three techniques, each of them on or off."""

from dataclasses import dataclass

from tidegate.control.bounds import Bounds
from tidegate.control.capacity.cycle import Cycle, PlanAhead
from tidegate.control.constraints import Constraints
from tidegate.control.decision import Decision, hold
from tidegate.control.measurement import Measurement
from tidegate.forecast import Forecaster
from tidegate.models.capacity.machines import CapacityModel, machines_for


@dataclass(frozen=True, slots=True)
class Techniques:
    """A row of table III."""

    uncertainty: bool
    """UA: count the capacity model's variance (eq. 8, 21)."""
    learning: bool
    """OL: learn from saturated intervals (III-B)."""
    forecast: bool
    """ARMA: plan for the highest expected load of the next cycle (eq. 14-18)."""


TABLE_III: dict[str, Techniques] = {
    "0:MST": Techniques(False, False, False),
    "1:MST+UA": Techniques(True, False, False),
    "2:MST+OL": Techniques(False, True, False),
    "3:MST+UA+OL": Techniques(True, True, False),
    "4:MST;ARMA": Techniques(False, False, True),
    "5:MST+UA;ARMA": Techniques(True, False, True),
    "6:MST+OL;ARMA": Techniques(False, True, True),
    "7:MST+UA+OL;ARMA": Techniques(True, True, True),
}


class MstPolicy:
    """One of the eight policies. Without a forecaster it decides at t for the present load
    (III-A3); with one, at t - U for the highest load expected in [t, t + S) (III-D)."""

    def __init__(
        self,
        name: str,
        model: CapacityModel,
        rho: float,
        *,
        forecaster: Forecaster | None = None,
        cycle: Cycle | None = None,
        from_minutes: bool = True,
    ) -> None:
        """`from_minutes`: whether it learns from measured minutes itself, if it learns at all. On a
        pipeline the model learns from each saturated micro-batch instead (`on_pipeline`)."""
        self._name = name
        self._techniques = TABLE_III[name]
        if self._techniques.forecast != (forecaster is not None):
            raise ValueError(f"policy {name} needs a forecaster if and only if it uses ARMA")
        self._model = model
        self._rho = rho
        self._forecaster = forecaster
        self._cycle = cycle or Cycle()
        self._ahead = PlanAhead(self._cycle)
        self._learns = self._techniques.learning and from_minutes
        self._learned_at = -1

    @property
    def name(self) -> str:
        """The name in table III."""
        return self._name

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        """Plan once a cycle, and hold otherwise."""
        if self._learns:
            self._learn(measurement)
        minute = self._cycle.minute_of(measurement)
        if self._forecaster is None:
            if minute != 0:
                return hold("no plan is due: the one of this cycle is in force")
            machines = self.machines(measurement.arrival_rate, 0.0, constraints.allowed)
            return Decision(cores=machines, reason=f"the load is {measurement.arrival_rate:.4g}")
        self._forecaster.observe(measurement.arrival_rate, measurement.at_s)
        if minute == self._ahead.plans_at:
            load, variance = self._highest(self._forecaster)
            machines = self.machines(load, variance, constraints.allowed)
            reason = f"a load of {load:.4g} is expected"
            decision = self._ahead.plan(machines, reason, measurement)
            if minute != 0 or not decision.holds:
                return decision
        if minute == 0:
            return self._ahead.begin(measurement)
        return hold("no plan is due: the one of this cycle is in force")

    def machines(self, load: float, load_variance: float, allowed: Bounds) -> int:
        """The machines for a load, by eq. 4, 8, 18 or 21, depending on the techniques."""
        uncertain = self._techniques.uncertainty or self._techniques.forecast
        needed = machines_for(
            load,
            self._rho if uncertain else 0.5,
            self._model,
            allowed.most,
            load_variance=load_variance,
            model_variance=self._techniques.uncertainty,
        )
        return allowed.clamp(needed)

    def _highest(self, forecaster: Forecaster) -> tuple[float, float]:
        """The step of eq. 14, U + k ahead of the last observed minute."""
        lead = self._cycle.startup_minutes
        load, variance = forecaster.forecast(lead + self._cycle.minutes).highest(skip=lead)
        return max(load, 0.0), max(variance, 0.0)

    def _learn(self, measurement: Measurement) -> None:
        """Learn from one interval per cycle that violated the objective (III-B)."""
        cycle = int((measurement.at_s - measurement.interval_s) // (60 * self._cycle.minutes))
        violated = measurement.processed_rate <= measurement.arrival_rate
        if measurement.saturated and violated and cycle != self._learned_at:
            self._model.observe(measurement.cores_granted, measurement.processed_rate)
            self._learned_at = cycle
