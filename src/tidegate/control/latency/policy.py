"""The default policy: the fewest cores that hold a latency target on a pipeline of micro-batches.

Every segment is a micro-batch station that is learned online. The load is forecast to the horizon
(the observed time to grant cores plus one batch) with a calibrated margin, and the planner gives
the fewest cores that hold the target there. The policy scales out at once and as far as needed. It
scales in, in one step, only after `scale_in_after_s` in which no tick needed more, and never while
a backlog is being drained. A scale-in that had to be taken back at the same load makes the next one
wait twice as long. While there is nothing to read, the minimum of cores is enough.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from tidegate.control.bounds import Bounds
from tidegate.control.constraints import Constraints
from tidegate.control.decision import Decision, hold
from tidegate.control.latency.awaited_cores import AwaitedCores
from tidegate.control.latency.backlog_note import BacklogNote
from tidegate.control.latency.calibration import Calibration
from tidegate.control.latency.first_batches import FirstBatches
from tidegate.control.latency.idleness import Idleness
from tidegate.control.latency.load_ahead import LoadAhead, LoadForecast
from tidegate.control.latency.options import LatencyOptions
from tidegate.control.latency.plan import Plan, Planner
from tidegate.control.latency.scale_in import FitWords, ScaleIn
from tidegate.control.latency.surges import SurgeHistory
from tidegate.control.learning.cold_batches import warm_duration_s
from tidegate.control.learning.pipeline_model import PipelineModel
from tidegate.control.measurement import Measurement
from tidegate.control.operator_tasks import evenly, tasks_on
from tidegate.control.remembering import Remembering
from tidegate.control.target import Target
from tidegate.forecast.remembering import finite
from tidegate.units import counted, format_duration

_WORTH_A_SPLIT = 0.93
"""The same cores are split again if that lowers the expected latency to this share."""
_AWAITED_S = 120.0
"""How long after a restart the first row is awaited."""
_SAME_TICK = 1.5
"""Ticks whose lengths differ by less than this factor are the same: no tick is exactly on time."""


class LatencyPolicy:
    """The policy that the module describes.

    It is called once a tick, after the model has learned, and is deterministic.
    """

    name = "latency"

    def __init__(
        self,
        target: Target,
        model: PipelineModel,
        options: LatencyOptions | None = None,
        *,
        forecast: LoadForecast | None = None,
    ) -> None:
        self._target = target
        self._model = model
        self._options = options or LatencyOptions()
        self._forecast = forecast
        self._calibration = Calibration(target, model)
        self._surges = SurgeHistory()
        self._planner = Planner(target, self._options, model, self._calibration, self._surges)
        self._first_batches = FirstBatches(target, self._options.catch_up_s)
        self._patience = ScaleIn(self._options.scale_in_after_s, self._options.least_saving)
        self._idleness = Idleness()
        self._awaited = AwaitedCores()
        self._backlog = BacklogNote()
        self._beliefs: dict[str, float] = {}
        self._heard = False
        """Whether any row has been measured. Right after a restart, the forecast knows better than
        a rate of zero."""
        self._began_s: float | None = None
        self._recalled = False
        """Whether the forecast is from an earlier run, and the tick of this one not known yet."""

    @property
    def beliefs(self) -> dict[str, float]:
        """What the last decision was based on, for its record."""
        return dict(self._beliefs)

    def learned(self) -> dict[str, Any]:
        """What the forecast, the reserve, the patience and the calibration have learned."""
        calibration = self._calibration
        return {
            "forecast": {} if self._forecast is None else self._forecast.learned(),
            "surges": self._surges.learned(),
            "scale_in": self._patience.learned(),
            "idleness": self._idleness.learned(),
            "calibration": calibration.learned() if isinstance(calibration, Remembering) else {},
        }

    def recall(self, learned: Mapping[str, Any], age_s: float) -> None:
        """Begin with what an earlier run learned."""
        found = learned.get("forecast")
        if found:
            forecast = LoadForecast(
                coverage=self._options.coverage, tick_s=max(finite(found["tick_s"]), 1e-3)
            )
            forecast.recall(found, age_s)
            self._forecast, self._recalled = forecast, True
        self._surges.recall(learned.get("surges", {}), age_s)
        self._patience.recall(learned.get("scale_in", {}), age_s)
        self._idleness.recall(learned.get("idleness", {}), age_s)
        if isinstance(self._calibration, Remembering):
            self._calibration.recall(learned.get("calibration", {}), age_s)

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        """Forecast the load, then compare the present cores with those that are needed."""
        allowed = constraints.allowed
        self._patience.notice(measurement)
        self._idleness.observe(measurement)
        self._awaited.observe(measurement)
        horizon_s = self._horizon_s(measurement)
        ahead = self._load_ahead(measurement, horizon_s)
        if not self._heard and ahead.rate > 0.0:
            measurement = self._model.at_rate(measurement, ahead.rate)
        self._surges.observe(measurement.arrival_rate, measurement.at_s, horizon_s)
        self._surges.plan_for(ahead.planned, measurement.at_s)
        self._beliefs = {
            "forecast_rate": ahead.rate,
            "margin": ahead.margin,
            "horizon_s": horizon_s,
        }
        self._first_batches.observe(measurement)
        awaited = not self._heard and ahead.rate > 0.0
        wait_s = self._patience.wait_s(measurement)
        idle_s = None if awaited else self._idleness.lasting_s(measurement, wait_s)
        if idle_s is not None:
            return self._at_rest(measurement, constraints, idle_s)
        present = self._model.stations(measurement)
        if present is None or not measurement.segments:
            return self._first_batches.decide(measurement, ahead, allowed)
        self._calibration.learn(measurement, present)
        self._beliefs["bias"] = self._calibration.bias
        self._beliefs["percentile_ratio"] = self._calibration.ratio
        self._beliefs |= self._model.beliefs()
        decision = self._compare(measurement, ahead, constraints)
        if self._model.only_cold(measurement):
            decision = self._first_batches.bounded(decision, measurement, ahead, allowed)
        return decision

    def _at_rest(
        self, measurement: Measurement, constraints: Constraints, idle_s: float
    ) -> Decision:
        """The minimum of cores while there is nothing to read, whatever a batch costs."""
        cores = constraints.whole(constraints.allowed.least)
        self._patience.remember(measurement, cores)
        why = f"no row has come for {format_duration(idle_s)}"
        if measurement.cores_asked <= cores or not all(one.idle for one in measurement.segments):
            return hold(f"{why}: the minimum is enough until one does")
        return Decision(
            reason=f"{why}: {counted(cores, 'core')} will do until one does",
            cores=cores,
            tasks=evenly(measurement, cores),
        )

    def _load_ahead(self, measurement: Measurement, horizon_s: float) -> LoadAhead:
        """The load up to the horizon.

        A restart measures no rate until its first batch. For a while it is expected that the load
        is what it was; if then there is still no row, there is no load.
        """
        forecast = self._forecast_for(measurement)
        ticks = math.ceil(horizon_s / max(measurement.step_s, 1e-3))
        self._heard |= measurement.arrival_rate > 0.0
        if self._heard:
            forecast.observe(measurement.arrival_rate, measurement.at_s)
            return forecast.within(ticks)
        if self._began_s is None:
            self._began_s = measurement.at_s
        if measurement.at_s - self._began_s > _AWAITED_S:
            return LoadAhead(rate=0.0, margin=1.0)
        return forecast.before_rows(ticks, measurement.at_s)

    def _forecast_for(self, measurement: Measurement) -> LoadForecast:
        """The forecast by ticks of the present length, which may differ from the earlier run's."""
        tick_s = measurement.step_s
        if self._forecast is None:
            self._forecast = LoadForecast(coverage=self._options.coverage, tick_s=tick_s)
        other = not 1.0 / _SAME_TICK < tick_s / self._forecast.tick_s < _SAME_TICK
        if self._recalled and other:
            self._forecast = self._forecast.retimed(tick_s)
        self._recalled = False
        return self._forecast

    def _horizon_s(self, measurement: Measurement) -> float:
        """The time to grant cores, plus one batch: new cores are used from the next batch on.

        The next batch is not as long as one in which workers were started.
        """
        batches = [batch for segment in measurement.segments for batch in segment.batches]
        batch_s = max((warm_duration_s(batch) for batch in batches), default=measurement.step_s)
        return self._options.grant_s(measurement.grant_s) + batch_s

    def _compare(
        self, measurement: Measurement, ahead: LoadAhead, constraints: Constraints
    ) -> Decision:
        allowed = constraints.allowed
        plan = self._planner.plan(measurement, ahead, allowed)
        plan = self._in_whole_executors(measurement, plan, constraints)
        current = {segment.name: max(segment.tasks, 1) for segment in measurement.segments}
        behind = self._calibration.behind(measurement)
        plan = self._with_backlog_note(measurement, plan, allowed, behind=behind)
        expected_s = self._planner.expected_s(measurement, ahead, current)
        expected_as_target_s = self._planner.expected_as_target_s(measurement, ahead, current)
        if math.isfinite(expected_s):
            self._beliefs["expected_s"] = expected_as_target_s
        self._beliefs["needed_cores"] = float(plan.total)
        self._beliefs["surge"] = plan.surge
        self._patience.remember(measurement, plan.total)
        asked = measurement.cores_asked
        waiting = measurement.cores_granted < asked
        if waiting and plan.total <= asked:
            use = self._use_awaited(measurement, plan, allowed, behind=behind)
            if use is None and plan.total < measurement.cores_granted and not behind:
                # What is still to come may never come: a full queue must not hold what is idle.
                return self._scale_in(measurement, plan, expected_s, allowed)
            return use or _said(hold(f"{asked} cores are asked for and on their way"), plan)
        short = expected_as_target_s > self._calibration.goal_s or behind
        if short and plan.limit is not None:
            plan = dataclasses.replace(plan, notes=(*plan.notes, plan.limit))
        wanting = plan.total > asked
        # Present cores hold the planned load. After a fall, a surge of what still comes is less.
        risky = (
            wanting
            and not short
            and measurement.arrival_rate * plan.surge > ahead.planned
            and self._planner.loses_surge(measurement, ahead, current, plan.surge)
        )
        enough = expected_as_target_s <= self._calibration.goal_s
        if wanting and enough and behind and self._model.starts_up(measurement):
            # Rows wait for workers that start. Further ones would only do the same.
            return _said(hold("the first batch on new cores still runs"), plan)
        if wanting and (short or risky):
            why = self._why_more(measurement, ahead, plan, expected_s, risky=risky, behind=behind)
            more = self._change(measurement, plan, f"{why}, target {self._target}")
            use = None if more.tasks else self._use_granted(measurement, plan, allowed)
            return more if use is None else dataclasses.replace(more, tasks=use.tasks)
        if behind:
            use = self._use_granted(measurement, plan, allowed)
            return use or _said(hold("catching up: no core is released meanwhile"), plan)
        if (
            short
            and plan.cores != current
            and plan.total == asked
            and self._gains_by_split(measurement, ahead, plan, expected_s)
        ):
            why = "the same cores are faster if they are divided differently"
            return self._change(measurement, plan, why)
        use = self._use_granted(measurement, plan, allowed)
        if use is not None:
            return use
        return self._scale_in(measurement, plan, expected_s, allowed)

    def _in_whole_executors(
        self, measurement: Measurement, plan: Plan, constraints: Constraints
    ) -> Plan:
        """The plan on all cores of its executors: a task more costs nothing there.

        A plan for a part of an executor would be taken back at the next tick, when the rest of its
        cores is found idle, and every change of tasks makes a batch longer.
        """
        cores = constraints.whole(plan.total)
        if cores <= plan.total:
            return plan
        wider = self._planner.enlarged(measurement, plan, cores, constraints.allowed)
        return dataclasses.replace(plan, cores=wider.cores, latency_s=wider.latency_s)

    def _with_backlog_note(
        self, measurement: Measurement, plan: Plan, allowed: Bounds, *, behind: bool
    ) -> Plan:
        """Say how long a backlog will last, if all cores cannot drain it in time."""
        if not behind:
            self._backlog.over()
            return plan
        takes_s = self._planner.catch_up_s(measurement, allowed)
        self._beliefs["catch_up_s"] = takes_s
        note = self._backlog.note(
            measurement.backlog_rows,
            takes_s,
            allowed.most,
            within_s=self._options.catch_up_s,
            at_s=measurement.at_s,
        )
        return plan if note is None else dataclasses.replace(plan, notes=(*plan.notes, note))

    def _gains_by_split(
        self, measurement: Measurement, ahead: LoadAhead, plan: Plan, expected_s: float
    ) -> bool:
        """Whether other shares of the same cores are faster by more than the model can tell.

        Each such change starts Python workers anew. Near a tie the best split changes with every
        batch.
        """
        if not math.isfinite(expected_s):
            return True
        return self._planner.expected_s(measurement, ahead, dict(plan.cores)) <= (
            _WORTH_A_SPLIT * expected_s
        )

    def _why_more(
        self,
        measurement: Measurement,
        ahead: LoadAhead,
        plan: Plan,
        expected_s: float,
        *,
        risky: bool,
        behind: bool,
    ) -> str:
        if risky:
            return f"a surge to {plan.surge:.2g} times the load would be late"
        if behind:
            return f"a backlog of {measurement.backlog_rows:,.0f} rows"
        if math.isfinite(expected_s):
            return f"{self._shown(expected_s)} expected at {ahead.planned:,.0f} rows/s"
        have = sum(max(segment.tasks, 1) for segment in measurement.segments)
        return f"{counted(have, 'core')} cannot keep up with {ahead.planned:,.0f} rows/s"

    def _scale_in(
        self, measurement: Measurement, plan: Plan, expected_s: float, allowed: Bounds
    ) -> Decision:
        """Release cores if no tick of the waiting time needed them; else hold."""
        words = self._fit_words(measurement.cores_asked, expected_s, allowed)
        objection = self._patience.objection(measurement, allowed.least, words)
        if objection is not None:
            return _said(hold(objection), plan)
        latency = measurement.latency
        if latency is not None and self._target.measured_s(latency) > self._calibration.goal_s:
            return _said(hold("latency is above the target: no core is released"), plan)
        needed = self._patience.enough(measurement)
        if plan.total < needed:
            plan = self._planner.enlarged(measurement, plan, needed, allowed)
        since_s = self._patience.enough_for_s(measurement, plan.total)
        return self._change(
            measurement,
            plan,
            f"{counted(plan.total, 'core')} would have been enough for {since_s:.0f} s",
        )

    def _fit_words(self, cores: int, expected_s: float, allowed: Bounds) -> FitWords:
        """How the present cores fit the target, also where it is missed."""
        fits = f"{self._shown(expected_s)} expected, target {self._target}"
        have = "1 core is" if cores == 1 else f"{cores} cores are"
        if expected_s * self._calibration.ratio <= self._target.latency_s:
            minimum = cores > 1 and cores == allowed.least
            return FitWords(fits, f"{have} {'the minimum' if minimum else 'right'}", "would do")
        if cores >= allowed.most:
            return FitWords(fits, f"{have} the maximum, and too few", "would do as well")
        return FitWords(fits, f"{have} kept, as more would hardly help", "would do as well")

    def _use_granted(
        self, measurement: Measurement, plan: Plan, allowed: Bounds
    ) -> Decision | None:
        """More tasks, to use cores that have been granted but are idle; None if there are none.

        They are used even while more are on their way: under a load that rises for long, some
        always are.
        """
        current = sum(segment.tasks for segment in measurement.segments)
        granted = min(measurement.cores_granted, measurement.cores_asked)
        if current >= granted or not measurement.operators:
            return None
        present = Plan({one.name: max(one.tasks, 1) for one in measurement.segments}, math.inf)
        wider = self._planner.enlarged(measurement, present, granted, allowed)
        if wider.total < plan.total <= granted:
            # For a backlog: in the steady state, which `enlarged` looks at, fewer would do.
            wider = plan
        tasks = tasks_on(measurement, wider.cores)
        if not tasks:
            return None
        return Decision(
            reason=f"{counted(granted, 'core')} have come: more tasks use them",
            tasks=tasks,
            notes=plan.notes,
            expected_latency_s=_finite(wider.latency_s * self._calibration.bias),
        )

    def _use_awaited(
        self, measurement: Measurement, plan: Plan, allowed: Bounds, *, behind: bool
    ) -> Decision | None:
        """More tasks while cores are on their way: for those that have come, or for all.

        A batch cannot get more tasks while it runs. One that is planned for a backlog just before
        its cores come would go on without them for as long as few cores take. With more tasks than
        there are cores, the tasks that still wait are for whatever comes meanwhile. Cores that are
        overdue may never come, and nothing is learned from batches whose tasks wait for them.
        """
        granted, asked = measurement.cores_granted, measurement.cores_asked
        if measurement.overdue is not None:
            fewer = self._without_overdue(measurement, allowed)
            return self._use_granted(measurement, plan, allowed) if fewer is None else fewer
        left_s = self._awaited.left_s(measurement)
        if not behind or self._planner.backlog_s(measurement, granted) <= left_s:
            return self._use_granted(measurement, plan, allowed)
        all_come = dataclasses.replace(measurement, cores_granted=asked)
        wider = self._use_granted(all_come, plan, allowed)
        if wider is None:
            return None
        reason = (
            f"the backlog would take {granted} cores longer than {format_duration(left_s)}, when"
            f" more should have come: the next batch has tasks for all {asked}"
        )
        return dataclasses.replace(wider, reason=reason)

    def _without_overdue(self, measurement: Measurement, allowed: Bounds) -> Decision | None:
        """Tasks for the cores that there are, where others were planned for; None if there are."""
        granted = measurement.cores_granted
        if sum(segment.tasks for segment in measurement.segments) <= granted:
            return None
        least = Plan({segment.name: 1 for segment in measurement.segments}, math.inf)
        fewer = self._planner.enlarged(measurement, least, granted, allowed)
        tasks = tasks_on(measurement, fewer.cores)
        if not tasks:
            return None
        there = counted(granted, "core")
        return Decision(
            reason=f"other cores are overdue: tasks for the {there} that there are", tasks=tasks
        )

    def _change(self, measurement: Measurement, plan: Plan, why: str) -> Decision:
        """Ask for the plan's cores; tasks change at once, unless cores take long to be granted."""
        cores = plan.total
        grows = cores > measurement.cores_granted
        # Until a grant has been seen, nobody knows. Tasks without a core would wait for one.
        slow = measurement.grant_s is None or measurement.grant_s > 2 * measurement.step_s
        tasks = {} if grows and slow else tasks_on(measurement, plan.cores)
        wanted = None if cores == measurement.cores_asked else cores
        if wanted is None and not tasks:
            has = f"it has {counted(cores, 'core')} already, and no task to change"
            return _said(hold(f"{has}: {why}"), plan)
        mean_s = plan.latency_s * self._calibration.bias
        return Decision(
            reason=f"{why}: with {counted(cores, 'core')}, {self._shown(mean_s)}",
            cores=wanted,
            tasks=tasks,
            notes=plan.notes,
            expected_latency_s=_finite(mean_s),
        )

    def _shown(self, mean_s: float) -> str:
        """The expected latency, of the kind the target is for."""
        value = mean_s * self._calibration.ratio
        if not value < math.inf:
            return "a latency that grows"
        return f"{self._target.kind} latency {format_duration(value)}"


def _said(decision: Decision, plan: Plan) -> Decision:
    return Decision(reason=decision.reason, notes=plan.notes)


def _finite(seconds: float) -> float | None:
    return seconds if math.isfinite(seconds) else None
