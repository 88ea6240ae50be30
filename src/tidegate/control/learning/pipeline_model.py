"""The one model of a pipeline: what each segment's batches cost, learned once a tick.

The latency policy, shedding and the sharing of cores all ask this model. It is learned before any
of them decides, by whoever runs the tick (the controller), so that they never disagree about what
a row costs.
"""

from tidegate.control.learning.segment_model import SegmentModel
from tidegate.control.learning.shed_row_cost import ShedRowCost
from tidegate.control.measurement import Measurement, SegmentMeasurement
from tidegate.models.microbatch.station import MicroBatchStation


class PipelineModel:
    """Measurements in, stations out. `learn` is called once a tick, in time order."""

    def __init__(self) -> None:
        self._segments: dict[str, SegmentModel] = {}
        self._shed_row = ShedRowCost()
        self.kept_share = 1.0
        """Of the rows that the newest batches of the first segment were offered, those kept."""

    def learn(self, measurement: Measurement) -> None:
        """Take in the batches of a tick.

        Only the first segment reads the sources, so only its batches contain shed rows. Their cost
        is learned apart and taken off, or the model would blame it on the rows that were kept.
        """
        for number, segment in enumerate(measurement.segments):
            learned = segment
            if number == 0:
                for batch in segment.batches:
                    self._shed_row.learn(batch)
                    if batch.rows > 0:
                        self.kept_share = batch.rows / (batch.rows + batch.shed_rows)
                learned = self._shed_row.without(segment)
            self._segments.setdefault(segment.name, SegmentModel()).learn(measurement, learned)

    @property
    def shed_row_s(self) -> float:
        """c_s: core seconds that a shed row costs."""
        return self._shed_row.row_s

    def segment(self, name: str) -> SegmentModel:
        """What is known of one segment; nothing yet for one that was never measured."""
        return self._segments.setdefault(name, SegmentModel())

    def knows(self, measurement: Measurement) -> bool:
        """Whether the cost of every segment is known."""
        names = [segment.name for segment in measurement.segments]
        return bool(names) and all(self.segment(name).cost is not None for name in names)

    def settled(self, measurement: Measurement) -> bool:
        """Whether every segment has run some batches since its tasks last changed."""
        return all(self.segment(one.name).settled >= 2 for one in measurement.segments)

    def stations(
        self, measurement: Measurement, factor: float = 1.0, cores: dict[str, int] | None = None
    ) -> list[MicroBatchStation] | None:
        """Every segment at `factor` times its present rate, as balanced as `cores` can be.

        None while a segment is unknown. Without `cores`, the present tasks count.
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
            )
            if station is None:
                return None
            found.append(station)
        return found

    def station_unshed(
        self, measurement: Measurement, segment: SegmentMeasurement, tasks: int
    ) -> MicroBatchStation | None:
        """A later segment as it would be if nothing were shed before it; None while unknown."""
        unshed = segment.arrival_rate / max(self.kept_share, 1e-6)
        visits = unshed / measurement.arrival_rate if measurement.arrival_rate > 0.0 else 1.0
        return self.segment(segment.name).station(unshed, visits, segment.trigger_s, cores=tasks)

    def beliefs(self) -> dict[str, float]:
        """What is known of each segment, for the record."""
        found: dict[str, float] = {}
        for name, model in self._segments.items():
            if model.cost is not None:
                found[f"{name}.a0_s"] = model.cost.fixed_s
                found[f"{name}.a1_s"] = model.cost.per_task_s
                found[f"{name}.w_s"] = model.cost.work_s
                found[f"{name}.imbalance"] = model.imbalance
        return found
