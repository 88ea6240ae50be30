"""Checks, before anything starts, whether a latency target can be reached at all.

Two limits are certain: with a trigger, a row waits half of the interval on average, and no
micro-batch is faster than an empty Spark job. With shedding, a target below these limits is
refused, because rows would be dropped for nothing. Without shedding it only causes a warning, and
the pipeline runs as fast as it can. If the checkpoint has records of an earlier run, the target is
also compared with what that run reached; this, too, only causes warnings.
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
"""Targets of this length or more are not probed: an empty job is always faster."""
_PROBES = 3
_CERTAIN = 0.5
"""The share of a probed job's time that counts as certain: jobs get faster as the JVM warms up."""


def check_reach(
    session: SparkSession, assembly: Assembly, checkpoint: str, trigger_s: float
) -> None:
    """Refuse a target that is certainly out of reach; warn of one that an earlier run missed."""
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
        _say(f"{error}; the pipeline will run as fast as it can")
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
    """The shortest time of several Spark jobs with one task and no rows."""
    spent_s = []
    for _ in range(_PROBES + 1):
        begun = time.perf_counter()
        session.range(0, 0, 1, 1).write.format("noop").mode("append").save()
        spent_s.append(time.perf_counter() - begun)
    return min(spent_s)


def _earlier(checkpoint: str) -> Earlier | None:
    place = Durable(checkpoint)
    try:
        if not place.local:
            return earlier(read_readable(place, newest_parts=1).records)
        newest = Path(place.path("")) / CURRENT
        return earlier(read_readable(newest).records) if newest.exists() else None
    except (TidegateError, OSError):  # no record can be read, or the store does not answer
        return None
