"""Notices that scale-outs have no effect, and says that no more cores should be added.

It sees measurements alone, so every policy is watched alike, and a replay finds the same. A series
of scale-outs begins with the first whose cores batches used. It ends when batches get faster, or
the target is met. Three in a row without an effect stop further ones, until the load, its balance,
the partitions of the source or the bottleneck change, or some time has passed. After that time one
more is tried, and if that has no effect either, the next time is twice as long.
"""

from dataclasses import dataclass

from tidegate.control.bottleneck import Bottleneck
from tidegate.control.effect.granted_cores import GrantedCores
from tidegate.control.effect.likely_cause import UNKNOWN, LikelyCause
from tidegate.control.effect.segment_watch import SegmentWatch
from tidegate.control.effect.series import BeforeAndAfter, ScaleOutSeries
from tidegate.control.learning.pipeline_model import PipelineModel
from tidegate.control.learning.smoothing import Alpha
from tidegate.control.measurement import Measurement
from tidegate.control.no_effect import NoEffect
from tidegate.control.target import Target

TIMES = 3
"""So many scale-outs in a row without effect stop further ones."""
AGAIN_S = 300.0
"""After so long one more scale-out is tried..."""
LONGEST_S = 3600.0
"""...and after twice as long each time that it had no effect, up to this."""
MET_S = 30.0
"""A target that is met for so long needs no more cores, so nothing is held any more."""
_SETTLED_S = 10.0
"""A series is over when the target was met for so long: a latency comes later than its load."""
_LOAD = 1.3
"""A load that differs by this factor is another one."""
_BALANCE = 1.33
"""An imbalance that differs by this factor is another one."""
_TICKS = 5
"""Another operator is the bottleneck if it is so for this many ticks in a row."""


@dataclass(frozen=True, slots=True)
class _Then:
    """What the pipeline was like when scale-outs were found to have no effect."""

    load: float
    imbalance: float
    partitions: tuple[int, int] | None


class ScaleOutWatch:
    """Sees every tick of a pipeline that has new numbers, after the model has learned from it."""

    def __init__(self, model: PipelineModel, target: Target) -> None:
        self._model = model
        self._target = target
        self._segments: dict[str, SegmentWatch] = {}
        self._load = Alpha(0.8)
        self._cores = GrantedCores()
        self._late = False
        """Whether the target was missed when that could last be told."""
        self._met_since_s: float | None = None
        self._found: NoEffect | None = None
        self._then: _Then | None = None
        self._bottleneck: str | None = None
        """The operator that limited the pipeline then, or would first have; None: not known."""
        self._other_bottleneck = 0
        """Ticks in a row in which another one limits it."""
        self._tried = 0
        """Scale-outs without effect that count although their series is over."""
        self._cause: LikelyCause | None = None
        """The cause that was named last."""
        self._again_s = AGAIN_S

    @property
    def no_effect(self) -> NoEffect | None:
        """Why no core should be added now; None: nothing speaks against it."""
        return self._found

    def observe(self, measurement: Measurement, bottleneck: Bottleneck | None = None) -> None:
        """Learn from a tick."""
        load = self._load.update(measurement.arrival_rate)
        self._look_at_target(measurement)
        present = {segment.name for segment in measurement.segments}
        for gone in self._segments.keys() - present:
            del self._segments[gone]
        for segment in measurement.segments:
            watch = self._segments.setdefault(segment.name, SegmentWatch())
            model, before = self._model.segment(segment.name), watch.series
            watch.observe(measurement, segment, model, self._cores, late=self._late)
            if before is None and watch.series is not None and self._met_since_s is not None:
                self._met_since_s = measurement.at_s
        self._cores.observe(measurement)
        if self._found is not None:
            self._look_again(measurement, self._found, load, bottleneck)
            return
        judged = self._judged()
        faster = any(compared.has_effect for _, _, compared in judged)
        if faster or self._met_s(measurement) >= _SETTLED_S:
            self._begin_anew(tried=0)
            self._again_s = AGAIN_S
            return
        useless = [
            (name, series, compared)
            for name, series, compared in judged
            if compared.has_none
            and series.late
            and series.times + self._tried >= TIMES
            # The same cores may also have been divided differently, which is no scale-out.
            and measurement.cores_asked > series.before.cores
        ]
        if useless:
            self._find(measurement, *max(useless, key=lambda one: one[1].times), load)
            self._bottleneck = None if bottleneck is None else bottleneck.operator

    def _look_at_target(self, measurement: Measurement) -> None:
        """Whether the target is missed; rows that are shed miss it, too."""
        latency = measurement.latency
        if measurement.keep < 1.0:
            self._late = True
        elif latency is not None:
            self._late = self._target.measured_s(latency) > self._target.latency_s
        if self._late:
            self._met_since_s = None
        elif self._met_since_s is None:
            self._met_since_s = measurement.at_s

    def _met_s(self, measurement: Measurement) -> float:
        """For how long the target has been met."""
        return 0.0 if self._met_since_s is None else measurement.at_s - self._met_since_s

    def _judged(self) -> list[tuple[str, ScaleOutSeries, BeforeAndAfter]]:
        """The series that can be judged, by segment."""
        found = []
        for name, watch in self._segments.items():
            compared = None if watch.series is None else watch.series.compared()
            if watch.series is not None and compared is not None:
                found.append((name, watch.series, compared))
        return found

    def _begin_anew(self, *, tried: int) -> None:
        self._tried = tried
        for watch in self._segments.values():
            watch.series = None

    def _find(
        self,
        measurement: Measurement,
        name: str,
        series: ScaleOutSeries,
        compared: BeforeAndAfter,
        load: float,
    ) -> None:
        watch = self._segments[name]
        cause = watch.cause(series)
        if cause.name == UNKNOWN and self._tried and self._cause is not None:
            cause = self._cause  # one more step alone tells less than the first three did
        self._cause = cause
        self._found = NoEffect(
            since_s=measurement.at_s,
            segment=name,
            times=series.times + self._tried,
            from_cores=series.before.cores,
            to_cores=measurement.cores_asked,
            duration_ratio=compared.ratio,
            expected_ratio=compared.expected,
            cause=cause.name,
            why=cause.why,
            again_s=self._again_s,
        )
        imbalance = watch.imbalance or series.after[-1].imbalance
        self._then = _Then(load, imbalance, watch.partitions)
        self._other_bottleneck = 0
        self._begin_anew(tried=0)

    def _look_again(
        self, measurement: Measurement, found: NoEffect, load: float, bottleneck: Bottleneck | None
    ) -> None:
        """Let cores be added again if something has changed, or it was long ago."""
        if self._changed(measurement, found, load, bottleneck):
            self._found, self._again_s = None, AGAIN_S
            self._begin_anew(tried=0)
        elif measurement.at_s - found.since_s >= found.again_s:
            self._found, self._again_s = None, min(2.0 * found.again_s, LONGEST_S)
            self._begin_anew(tried=TIMES - 1)
        else:
            self._begin_anew(tried=0)

    def _changed(
        self, measurement: Measurement, found: NoEffect, load: float, bottleneck: Bottleneck | None
    ) -> bool:
        then, watch = self._then, self._segments.get(found.segment)
        assert then is not None  # it was noted when this was found
        if watch is None:
            return True  # the query is gone
        limits = bottleneck.operator if bottleneck is not None and bottleneck.limits else None
        other = None not in (limits, self._bottleneck) and limits != self._bottleneck
        self._other_bottleneck = self._other_bottleneck + 1 if other else 0
        return (
            self._met_s(measurement) >= MET_S
            or _differs(load, then.load, _LOAD)
            or _differs(watch.imbalance, then.imbalance, _BALANCE)
            or watch.partitions != then.partitions
            or self._other_bottleneck >= _TICKS
        )


def _differs(now: float | None, then: float, factor: float) -> bool:
    """Whether a number is another by a factor; one that is not known is not."""
    return now is not None and max(now, then) > factor * min(now, then)
