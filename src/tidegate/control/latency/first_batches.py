"""What to do before the model knows what a batch costs.

Only a late batch or a measured overload is a reason to act then. The number of cores to ask for
follows from the batch's overrun or the observed throughput.
"""

import math

from tidegate.control.bounds import Bounds
from tidegate.control.decision import Decision, hold
from tidegate.control.latency.load_ahead import LoadAhead
from tidegate.control.measurement import Measurement
from tidegate.control.operator_tasks import tasks_on
from tidegate.control.target import Target
from tidegate.units import format_duration


def before_the_model(
    measurement: Measurement,
    ahead: LoadAhead,
    allowed: Bounds,
    target: Target,
    catch_up_s: float,
) -> Decision:
    """Scale out for a late first batch or a saturated pipeline; else hold and learn.

    Rows kept arriving while a late first batch ran. The next batch therefore gets more cores, by
    the factor by which the first one overran the target.
    """
    ended = [batch for segment in measurement.segments for batch in segment.batches]
    longest_s = max((batch.duration_s for batch in ended), default=0.0)
    late = allowed.clamp(math.ceil(measurement.cores_asked * longest_s / target.latency_s))
    if longest_s > target.latency_s and late > measurement.cores_asked:
        return Decision(
            reason=f"a first batch took {format_duration(longest_s)}, target {target}:"
            f" {late} cores for the rows that arrived meanwhile",
            cores=late,
            tasks=_spread(measurement, late),
        )
    latency = measurement.latency
    above = latency is not None and target.measured_s(latency) > target.latency_s
    if not (measurement.saturated and above and measurement.processed_rate > 0.0):
        return hold("learning what a batch costs")
    per_core = measurement.processed_rate / max(measurement.cores_granted, 1)
    wanted_rate = ahead.planned + measurement.backlog_rows / catch_up_s
    cores = allowed.clamp(math.ceil(wanted_rate / per_core))
    if cores <= measurement.cores_asked:
        return hold("learning what a batch costs; the cores asked for keep up")
    return Decision(
        reason=f"saturated at {per_core:,.0f} rows/s per core: {wanted_rate:,.0f} rows/s need"
        f" {cores} cores",
        cores=cores,
        tasks=_spread(measurement, cores),
    )


def _spread(measurement: Measurement, cores: int) -> dict[str, int]:
    """Tasks on so many cores, divided evenly: which segment needs more is not known yet."""
    each = max(cores // max(len(measurement.segments), 1), 1)
    return tasks_on(measurement, {one.name: each for one in measurement.segments})
