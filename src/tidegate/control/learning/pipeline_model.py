"""The one model of a pipeline: what each segment's batches cost, learned once a tick.

The latency policy, shedding and the sharing of cores all use this model. The controller lets it
learn before any of them decides, so that they never disagree about what a row costs.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from tidegate.control.learning.offered_rates import OfferedRates
from tidegate.control.learning.segment_model import SegmentModel
from tidegate.control.learning.shed_row_cost import ShedRowCost
from tidegate.control.learning.visits import Visits
from tidegate.control.measurement import Measurement, SegmentMeasurement
from tidegate.forecast.remembering import finite
from tidegate.models.microbatch.station import MicroBatchStation

_GONE_S = 28 * 86_400.0
"""A segment that was not measured for so long is forgotten."""


class PipelineModel:
    """Measurements in, stations out. `learn` is called once a tick, in time order."""

    def __init__(self) -> None:
        self._segments: dict[str, SegmentModel] = {}
        self._recalled: dict[str, SegmentModel] = {}
        """Segments of an earlier run that were not measured yet."""
        self._unmeasured: dict[str, dict[str, Any]] = {}
        """What was kept of them. A query that is attached, or a part that was taken out for a
        while, may come back after another restart, with what was learned of it."""
        self._at_s = 0.0
        self._visits = Visits()
        self._offered = OfferedRates()
        self._shed_row = ShedRowCost()
        self.kept_share = 1.0
        """The share of rows that the newest batch of the first segment kept."""

    def learn(self, measurement: Measurement) -> None:
        """Learn from the batches of a tick.

        Only the first segment reads the sources, so only its batches contain shed rows. Their cost
        is learned separately and subtracted, or the model would attribute it to the rows kept.
        """
        self._at_s = measurement.at_s
        self._visits.learn(measurement)
        self._offered.learn(measurement)
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
        """What was learned of each segment, to begin with after a restart.

        It includes segments of earlier runs that were not measured in this one, as they were kept.
        """
        measured = {name: model.learned() for name, model in self._segments.items()}
        known = {name: part for name, part in measured.items() if part}
        return {
            "at_s": self._at_s,
            "segments": {**self._unmeasured, **known},
            "visits": self._visits.learned(),
            "shed_row": self._shed_row.learned(),
            "kept_share": self.kept_share,
        }

    def recall(self, learned: Mapping[str, Any], age_s: float) -> None:
        """Begin with what an earlier run learned.

        Each segment is as old as its own last batches. Those that are gone for long are left out.
        """
        newest_s = float(learned.get("at_s", 0.0))
        for name, part in learned.get("segments", {}).items():
            if not part:
                continue
            old_s = age_s + max(newest_s - float(part["at_s"]), 0.0)
            if old_s <= _GONE_S:
                self._recalled[name] = SegmentModel()
                self._recalled[name].recall(part, old_s)
                self._unmeasured[name] = dict(part)
        self._at_s = newest_s + age_s
        self._visits.recall(learned.get("visits", {}), age_s)
        self._shed_row.recall(_sums(learned.get("shed_row", {})), age_s)
        self.kept_share = min(max(finite(learned.get("kept_share", 1.0)), 0.0), 1.0)

    @property
    def shed_row_s(self) -> float:
        """c_s: core seconds that a shed row costs."""
        return self._shed_row.row_s

    def segment(self, name: str) -> SegmentModel:
        """The model of one segment; an empty one if the segment was never measured."""
        if name not in self._segments:
            self._segments[name] = self._recalled.pop(name, SegmentModel())
        return self._segments[name]

    def rates(self, measurement: Measurement, planned: float) -> list[float]:
        """The rate of each segment when so many rows a second come from outside.

        The share of a source is known at once. What comes through channels lags behind, so the
        rate of a later segment, and of rows that a loop sends back, follows from the averaged visit
        ratio. It is not planned below the present rate: those rows are there.
        """
        outside = measurement.arrival_rate
        found = []
        for number, segment in enumerate(measurement.segments):
            now, first = segment.arrival_rate, number == 0
            if outside <= 0.0:
                found.append(now)
            elif first and not segment.loops:
                found.append(now * (planned / outside))
            else:
                ratio = self._visit_ratio(measurement, segment, first=first)
                found.append(max(ratio * planned, now))
        return found

    def usual_visits(self, name: str) -> float | None:
        """The averaged visit ratio of a segment, whatever its rate is now; None while unknown."""
        return self._visits.ratio(name)

    def at_rate(self, measurement: Measurement, rate: float) -> Measurement:
        """The measurement of a tick before the first row, as if this rate had been measured."""
        segments = tuple(
            dataclasses.replace(one, arrival_rate=rate * (self._visits.ratio(one.name) or 1.0))
            for one in measurement.segments
        )
        return dataclasses.replace(measurement, arrival_rate=rate, segments=segments)

    def knows(self, measurement: Measurement) -> bool:
        """Whether the cost of every segment is known."""
        names = [segment.name for segment in measurement.segments]
        return bool(names) and all(self.segment(name).cost is not None for name in names)

    def only_cold(self, measurement: Measurement) -> bool:
        """Whether the cost of a segment is known from cold batches alone, and so is too high."""
        # A query that fell silent after its first batches says nothing about the others.
        busy = [one for one in measurement.segments if one.arrival_rate > 0.0 or one.backlog_rows]
        return any(self.segment(one.name).only_cold for one in measurement.segments) and all(
            self.segment(one.name).only_cold for one in busy
        )

    def starts_up(self, measurement: Measurement) -> bool:
        """Whether workers that have just come still start, in a batch that waits for them."""
        segments = measurement.segments
        return any(self.segment(one.name).starts_up(measurement, one) for one in segments)

    def settled(self, measurement: Measurement) -> bool:
        """Whether every segment has run a few batches since its tasks last changed."""
        return all(self.segment(one.name).settled >= 2 for one in measurement.segments)

    def stations(
        self,
        measurement: Measurement,
        planned: float | None = None,
        cores: dict[str, int] | None = None,
    ) -> list[MicroBatchStation] | None:
        """One station per segment, at the present rates, or with `planned` rows from outside.

        With `cores`, each station has the imbalance to expect on that many cores; without, it has
        the present one. None while the cost of a segment is unknown.
        """
        rates = [one.arrival_rate for one in measurement.segments]
        if planned is not None:
            rates = self.rates(measurement, planned)
        found = []
        for number, (segment, rate) in enumerate(zip(measurement.segments, rates, strict=True)):
            station = self.segment(segment.name).station(
                rate,
                self._visit_ratio(measurement, segment, first=number == 0),
                segment.trigger_s,
                cores=None if cores is None else cores[segment.name],
                loops=segment.loops,
                passes=self._offered.passes(segment.name) if segment.loops else None,
                apart=segment.apart,
            )
            if station is None:
                return None
            found.append(station)
        return found

    def _visit_ratio(
        self, measurement: Measurement, segment: SegmentMeasurement, *, first: bool
    ) -> float:
        """Visits for each row from outside.

        A segment that reads a source has the present share of the rows, up to all of them. What it
        gets beyond that comes through channels.
        """
        if measurement.arrival_rate <= 0.0:
            return 1.0
        present = segment.arrival_rate / measurement.arrival_rate
        usual = self._visits.ratio(segment.name)
        if usual is None or (first and not segment.loops):
            return present
        return min(present, max(usual, 1.0)) if first or segment.apart else usual

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
                found[f"{name}.least_s"] = model.cost.least_s
                if model.cost.rowless_s:
                    found[f"{name}.rowless_s"] = model.cost.rowless_s
                found[f"{name}.imbalance"] = model.imbalance.now
                found[f"{name}.noise"] = model.noise
                found[f"{name}.start_up_s"] = model.start_up_s
        return found


def _sums(shed_row: Mapping[str, Any]) -> Mapping[str, Any]:
    """What was learned of shed rows; a ValueError if it is not sums of three terms."""
    if not shed_row:
        return {}
    rows = [*shed_row["moments"], shed_row["product"]]
    table = [[finite(one) for one in row] for row in rows]
    if [len(row) for row in table] != [3, 3, 3, 3]:
        raise ValueError("the sums of a fit of three terms have another shape")
    return {"moments": table[:3], "product": table[3], "row_s": finite(shed_row["row_s"])}
