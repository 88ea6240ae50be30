"""What goes into a policy: one frozen picture of the pipeline per tick."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorMeasurement:
    """One operator during the tick: DRS IV-A's lambda_i, mu_i, k_i, and Elasticutor's delta."""

    name: str
    arrival_rate: float
    """Rows per second offered to the operator (lambda_i)."""
    service_rate: float
    """Rows per second that one core completes (mu_i)."""
    arrival_scv: float = 1.0
    service_scv: float = 1.0
    tasks: int = 1
    imbalance: float = 1.0
    """delta: load of the fullest task over the mean load of the tasks."""
    state_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Sojourn of the rows that were completed during the tick."""

    mean_s: float
    p50_s: float
    p95_s: float
    p99_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """The pipeline during one tick: all that a policy may know about the present.

    Time comes in as data (`at_s`), so that the same policy runs in a simulator and on Spark.
    """

    at_s: float
    """Seconds since the epoch at the end of the tick."""
    interval_s: float
    """Length of the tick."""
    arrival_rate: float
    """Rows per second that arrived from outside (lambda_0)."""
    processed_rate: float
    """Rows per second completed."""
    backlog_rows: float
    """Rows that have arrived and are not completed at the end of the tick."""
    cores_asked: int
    """Cores (a backtest's machines) asked for so far."""
    cores_granted: int
    """Cores that are up and working."""
    saturated: bool
    """Rows were waiting all the time, so `processed_rate` was the capacity (MST III-B)."""
    cores_busy: float | None = None
    """Mean number of cores at work during the tick, where the body can tell."""
    latency: Latency | None = None
    operators: tuple[OperatorMeasurement, ...] = ()
