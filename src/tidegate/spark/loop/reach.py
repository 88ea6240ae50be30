"""Whether a target is within reach, checked before anything starts.

Two things are certain: with a trigger, a row waits half of its interval on average, and no
micro-batch is quicker than an empty Spark job. A target below that is refused with shedding,
because rows would be dropped for nothing; without shedding it is a warning, and the pipeline runs
at its best. The records of an earlier run on the same checkpoint know more; what they object to is
a warning, too.
"""

import time
import warnings
from pathlib import Path

from pyspark.sql import SparkSession

from tidegate.control.assembly import Assembly
from tidegate.control.shedding.classes import refuse_below_floor
from tidegate.control.shedding.earlier_run import Earlier, earlier, objections
from tidegate.errors import AskedWrongly, TidegateError
from tidegate.models.microbatch.batch_cost import BatchCost
from tidegate.recording import CURRENT, read_readable
from tidegate.spark.master import parse_master
from tidegate.spark.state.files import Durable

_PROBED_BELOW_S = 1.0
"""No empty job takes so long that a longer target could be out of reach."""
_PROBES = 3
_CERTAIN = 0.5
"""Of an empty job's time: jobs get quicker as the JVM gets warm."""


def check_reach(
    session: SparkSession, assembly: Assembly, checkpoint: str, trigger_s: float
) -> None:
    """Refuse a target that is certainly out of reach, and warn of one that was so last time."""
    target_s, over_mean = assembly.target.latency_s, assembly.target.steady_ratio
    master = parse_master(str(session.sparkContext.master))
    least_s = 0.0
    if target_s < _PROBED_BELOW_S and master.in_one_process:
        least_s = _CERTAIN * empty_job_s(session)
    empty = BatchCost(fixed_s=least_s, work_s=0.0)
    try:
        refuse_below_floor(target_s, over_mean * empty.floor_s(1, trigger_s))
    except AskedWrongly as error:
        if assembly.shed is not None:
            raise
        _say(f"{error}; it runs at its best")
        return
    known = _earlier(checkpoint)
    if known is not None:
        for sentence in objections(
            known,
            target_s=target_s,
            over_mean=over_mean,
            trigger_s=trigger_s,
            cores=assembly.bounds.most,
            classes=assembly.classes if assembly.shed is not None else {},
        ):
            _say(f"by the records of an earlier run, {sentence}")


def _say(sentence: str) -> None:
    warnings.warn(sentence, stacklevel=4)


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
    newest = Path(place.path("")) / CURRENT
    if not place.local or not newest.exists():
        return None
    try:
        return earlier(read_readable(newest).records)
    except TidegateError:  # none that can be read
        return None
