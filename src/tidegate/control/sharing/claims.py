"""Computes what a pipeline claims of the application's cores, from its learned model."""

from tidegate.control.claim import Claim, ClaimedLoad
from tidegate.control.learning.pipeline_model import PipelineModel
from tidegate.control.measurement import Measurement
from tidegate.models.microbatch.batch_cost import BatchCost


class Claimant:
    """Makes the claims of one pipeline, whatever its policy is."""

    def __init__(self, model: PipelineModel, mean_s: float) -> None:
        self._model = model
        self._mean_s = mean_s
        """The pipeline's target, converted to a mean latency."""

    def claim(self, measurement: Measurement) -> Claim:
        """What the pipeline claims at this tick.

        The costs of its segments are added up to one station. That is exact when the cores are
        split by load: all segments then have the same utilisation rho, and the latency is the sum
        of their 1.5 a / (1 - rho).
        """
        cores = measurement.cores_asked
        if not self._model.knows(measurement):
            return Claim(cores=cores)
        fixed_s = per_task_s = work_s = least_s = rowless_s = 0.0
        outside = measurement.arrival_rate
        for number, segment in enumerate(measurement.segments):
            model = self._model.segment(segment.name)
            assert model.cost is not None  # the model knows every segment
            first = number == 0 or outside <= 0.0
            visits = 1.0 if first else segment.arrival_rate / (outside * measurement.keep or 1.0)
            fixed_s += visits * model.cost.fixed_s
            per_task_s += visits * model.cost.per_task_s
            work_s += visits * model.cost.work_s * model.imbalance.now
            least_s += visits * model.cost.least_s
            rowless_s += visits * model.cost.rowless_s
        return Claim(
            cores=cores,
            load=ClaimedLoad(
                target_s=self._mean_s,
                # Not the rate from outside: the first segment's rate fades when the source is
                # silent, so that no cores are claimed for a load that has ended.
                arrival_rate=measurement.segments[0].arrival_rate,
                cost=BatchCost(
                    fixed_s=fixed_s,
                    per_task_s=per_task_s,
                    work_s=work_s,
                    least_s=least_s,
                    rowless_s=rowless_s,
                ),
            ),
        )
