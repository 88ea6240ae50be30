"""Whether a target is within reach, asked before anything starts.

Three things tell: the trigger's interval, since a row waits half of it on average; an empty Spark
job, which no micro-batch undercuts; and the records of an earlier run on the same checkpoint. With
shedding, a target out of reach is refused, because all rows would be dropped for nothing; without,
it is said and the pipeline runs at its best.
"""

import time
import warnings

from pyspark.sql import SparkSession

from tidegate.control.earlier import Earlier, earlier, refuse_unshedable
from tidegate.control.policies.latency import STEADY_RATIO
from tidegate.control.shed_classes import refuse_below_floor
from tidegate.errors import TidegateError
from tidegate.recording import read_readable
from tidegate.spark.loop import ControlOptions
from tidegate.spark.state.files import Durable
from tidegate.units import format_duration

_PROBED_BELOW_S = 1.0
"""Nobody's empty job takes so long that a longer target is out of reach."""
_PROBES = 3


def check_reach(
    session: SparkSession, options: ControlOptions, checkpoint: str, trigger_s: float
) -> None:
    """Refuse with shedding, or warn without, what cannot be held."""
    ratio = STEADY_RATIO[options.latency.percentile]
    mean_s = options.target_s / ratio
    known = _earlier(checkpoint)
    floor_s = 0.5 * trigger_s
    if known is not None:
        floor_s += known.floor_s(options.bounds.least)
    elif mean_s < _PROBED_BELOW_S:
        floor_s += 1.5 * empty_job_s(session)
    if options.shed is not None:
        refuse_below_floor(options.target_s, floor_s * ratio)
        if known is not None:
            refuse_unshedable(
                known,
                target_s=mean_s,
                cores=options.bounds.most,
                least=options.bounds.least,
                classes=options.classes,
            )
    elif mean_s <= floor_s:
        warnings.warn(
            f"the target of {format_duration(options.target_s)} is below this pipeline's floor of "
            f"{format_duration(floor_s * ratio, round_up=True)}, which no number of cores lowers; "
            "it runs at its best",
            stacklevel=3,
        )


def empty_job_s(session: SparkSession) -> float:
    """The shortest of some jobs with one task and no rows."""
    spent_s = []
    for _ in range(_PROBES + 1):
        begun = time.perf_counter()
        session.range(0, 0, 1, 1).write.format("noop").mode("append").save()
        spent_s.append(time.perf_counter() - begun)
    return min(spent_s)


def _earlier(checkpoint: str) -> Earlier | None:
    place = Durable(checkpoint)
    if not place.local:
        return None
    try:
        return earlier(read_readable(place.path("")).records)
    except TidegateError:  # there are none yet, or none that can be read
        return None
