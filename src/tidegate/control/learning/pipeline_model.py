"""The one model of a pipeline: what each segment's batches cost, learned once a tick.

The latency policy, shedding and the sharing of cores all use this model. The controller lets it
learn before any of them decides, so that they never disagree about what a row costs.
"""

from collections.abc import Mapping
from typing import Any

from tidegate.control.learning.segment_model import SegmentModel
from tidegate.control.learning.shed_row_cost import ShedRowCost
from tidegate.control.measurement import Measurement, SegmentMeasurement
from tidegate.models.microbatch.station import MicroBatchStation


class PipelineModel:
    """Measurements in, stations out. `learn` is called once a tick, in time order."""

    def __init__(self) -> None:
        self._segments: dict[str, SegmentModel] = {}
        self._recalled: dict[str, SegmentModel] = {}
        """Segments of an earlier run that were not measured yet."""
        self._shed_row = ShedRowCost()
        self.kept_share = 1.0
        """The share of rows that the newest batch of the first segment kept."""

    def learn(self, measurement: Measurement) -> None:
        """Learn from the batches of a tick.

        Only the first segment reads the sources, so only its batches contain shed rows. Their cost
        is learned separately and subtracted, or the model would attribute it to the rows kept.
        """
        for number, segment in enumerate(measurement.segments):
            learned = segment
            if number == 0:
                for batch in segment.batches:
                    self._shed_row.learn(batch)
                    if batch.rows > 0:
                        self.kept_share = batch.rows / (batch.rows + batch.shed_rows)
                learned = self._shed_row.without(segment)
            self.segment(segment.name).learn(measurement, learned)

    def learned(self) -> dict[str, Any]:
        """What was learned of each segment, to begin with after a restart."""
        return {
            "segments": {name: model.learned() for name, model in self._segments.items()},
            "shed_row": self._shed_row.learned(),
            "kept_share": self.kept_share,
        }

    def recall(self, learned: Mapping[str, Any], age_s: float) -> None:
        """Begin with what an earlier run learned; segments that are gone are left out."""
        for name, part in learned.get("segments", {}).items():
            if part:
                self._recalled[name] = SegmentModel()
                self._recalled[name].recall(part, age_s)
        self._shed_row.recall(learned.get("shed_row", {}), age_s)
        self.kept_share = float(learned.get("kept_share", 1.0))

    @property
    def shed_row_s(self) -> float:
        """c_s: core seconds that a shed row costs."""
        return self._shed_row.row_s

    def segment(self, name: str) -> SegmentModel:
        """The model of one segment; an empty one if the segment was never measured."""
        if name not in self._segments:
            self._segments[name] = self._recalled.pop(name, SegmentModel())
        return self._segments[name]

    def knows(self, measurement: Measurement) -> bool:
        """Whether the cost of every segment is known."""
        names = [segment.name for segment in measurement.segments]
        return bool(names) and all(self.segment(name).cost is not None for name in names)

    def settled(self, measurement: Measurement) -> bool:
        """Whether every segment has run a few batches since its tasks last changed."""
        return all(self.segment(one.name).settled >= 2 for one in measurement.segments)

    def stations(
        self, measurement: Measurement, factor: float = 1.0, cores: dict[str, int] | None = None
    ) -> list[MicroBatchStation] | None:
        """One station per segment, at `factor` times the segment's present rate.

        With `cores`, each station has the imbalance to expect on that many cores; without, it has
        the present one. None while the cost of a segment is unknown.
        """
        outside = max(measurement.arrival_rate, 1e-9)
        found = []
        for segment in measurement.segments:
            visits = segment.arrival_rate / outside if measurement.arrival_rate > 0.0 else 1.0
            station = self.segment(segment.name).station(
                segment.arrival_rate * factor,
                visits,
                segment.trigger_s,
                cores=None if cores is None else cores[segment.name],
                loops=segment.loops,
                apart=segment.apart,
            )
            if station is None:
                return None
            found.append(station)
        return found

    def station_unshed(
        self, measurement: Measurement, segment: SegmentMeasurement, tasks: int
    ) -> MicroBatchStation | None:
        """A later segment, at the rate it would have without shedding; None while unknown."""
        unshed = segment.arrival_rate / max(self.kept_share, 1e-6)
        visits = unshed / measurement.arrival_rate if measurement.arrival_rate > 0.0 else 1.0
        return self.segment(segment.name).station(unshed, visits, segment.trigger_s, cores=tasks)

    def beliefs(self) -> dict[str, float]:
        """The learned costs of each segment, for the record."""
        found: dict[str, float] = {}
        for name, model in self._segments.items():
            if model.cost is not None:
                found[f"{name}.a0_s"] = model.cost.fixed_s
                found[f"{name}.a1_s"] = model.cost.per_task_s
                found[f"{name}.w_s"] = model.cost.work_s
                found[f"{name}.imbalance"] = model.imbalance
                found[f"{name}.noise"] = model.noise
                found[f"{name}.start_up_s"] = model.start_up_s
        return found
