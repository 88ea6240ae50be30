"""A run in retrospect: where it was limited, what was decided, and what the decisions did."""

from collections.abc import Callable, Sequence

import numpy as np

from tidegate.control.bottleneck import Bottleneck
from tidegate.control.flow.bottleneck import BottleneckFinder
from tidegate.control.record import Record
from tidegate.errors import AskedWrongly
from tidegate.view.batch_time import batches_by_segment
from tidegate.view.changes import again, changes_of, outcome_of, words_of
from tidegate.view.cores_used import cores_used
from tidegate.view.executors import executor_findings
from tidegate.view.explanation import ExplainedDecision, Explanation, Moment, Span
from tidegate.view.hindsight.look_back import hindsight_of
from tidegate.view.lag import lag_sentence, source_limits
from tidegate.view.network_choice import networks_of

SETTLING = 2
"""The first ticks after a change are ignored: they do not show its effect yet."""
AFTER_S = 30.0
"""The effect of a change is measured over at most this long, up to the next change."""
BEFORE_S = 5.0
_GAP = 5.0
"""A pause of more than this many intervals between two ticks means that the run was down."""


def explain(
    records: Sequence[Record],
    at_s: float | None = None,
    watch: Callable[[], None] = lambda: None,
) -> Explanation:
    """Explain these records, oldest first.

    The flow network is drawn where it was fullest, or `at_s` seconds after the start. `watch` is
    called once for each record, to show how far it is.
    """
    if not records:
        raise AskedWrongly("There is no record to explain: give those of at least one tick.")
    found = bottlenecks_of(records)
    first = records[0].measurement
    start_s = first.at_s - first.interval_s
    return Explanation(
        seconds=records[-1].measurement.at_s - start_s,
        ticks=len(records),
        policies=tuple(dict.fromkeys(record.policy for record in records)),
        spans=tuple(_spans(records, found, start_s)),
        steps=tuple(_steps(records, found, start_s)),
        fetched=tuple(_fetched(records)),
        networks=networks_of(records, found, start_s, at_s),
        lag=lag_sentence([record.measurement for record in records]),
        source_limits=tuple(source_limits(records)),
        executors=tuple(executor_findings(records)),
        batches=batches_by_segment(records),
        cores=cores_used(records),
        latency_s=_mean_latency_s(records),
        target_s=records[-1].target_s,
        hindsight=hindsight_of(records, watch),
    )


def _mean_latency_s(records: Sequence[Record]) -> float | None:
    """The mean latency over all rows that were done; None where none was measured."""
    return _moment(records, [None] * len(records), range(len(records))).latency_s


def bottlenecks_of(records: Sequence[Record]) -> list[Bottleneck | None]:
    """The bottleneck of each tick; where a record has none, it is found from its measurement."""
    finder = BottleneckFinder()
    found = []
    for record in records:
        stale = record.measurement.stale is not None
        anew = None if stale else finder.find(record.measurement)
        found.append(record.bottleneck or anew)
    return found


def _spans(
    records: Sequence[Record], found: Sequence[Bottleneck | None], start_s: float
) -> list[Span]:
    """Ticks without a bottleneck belong to the span around them."""
    runs: list[list[int]] = []
    last_s = start_s
    for place, (record, one) in enumerate(zip(records, found, strict=True)):
        tick = record.measurement
        down = tick.at_s - tick.interval_s - last_s > _GAP * tick.interval_s
        last_s = tick.at_s
        if one is None:
            if runs and not down:
                runs[-1].append(place)
            continue
        before = found[runs[-1][0]] if runs and not down else None
        if before is not None and before.operator == one.operator:
            runs[-1].append(place)
        else:
            runs.append([place])
    return [_span(records, found, places, start_s) for places in runs]


def _span(
    records: Sequence[Record],
    found: Sequence[Bottleneck | None],
    places: Sequence[int],
    start_s: float,
) -> Span:
    told = [(records[place].measurement, one) for place in places if (one := found[place])]
    first, last = records[places[0]].measurement, records[places[-1]].measurement
    loads = [one.load for _, one in told]
    tasks = [one.tasks for _, one in told]
    return Span(
        operator=told[0][1].operator,
        begin_s=first.at_s - first.interval_s - start_s,
        end_s=last.at_s - start_s,
        limiting_s=sum(tick.interval_s for tick, one in told if one.limits),
        load=float(np.mean(loads)),
        peak_load=max(loads),
        least_tasks=min(tasks),
        most_tasks=max(tasks),
        gain=float(np.median([one.gain for _, one in told])),
    )


def _steps(
    records: Sequence[Record], found: Sequence[Bottleneck | None], start_s: float
) -> list[ExplainedDecision]:
    acted = [place for place, record in enumerate(records) if record.acted and changes_of(record)]
    steps: list[ExplainedDecision] = []
    wish = None
    for place, record in enumerate(records):
        if not changes_of(record):
            continue
        repeated, wish = again(wish, record), record
        if repeated:
            continue
        at_s = record.measurement.at_s
        until = next((other for other in acted if other > place), len(records) - 1)
        behind = [
            other
            for other in range(place + 1, until + 1)
            if records[other].measurement.at_s <= at_s + AFTER_S
        ]
        settled = behind[SETTLING:] or behind
        ahead = [
            other for other in range(place + 1) if records[other].measurement.at_s > at_s - BEFORE_S
        ]
        steps.append(
            ExplainedDecision(
                at_s=at_s - start_s,
                what=words_of(record),
                why=record.decision.reason,
                outcome=outcome_of(record),
                acted=record.acted,
                expected_latency_s=record.decision.expected_latency_s,
                before=_moment(records, found, ahead, last=1),
                after=_moment(records, found, settled),
                durable_bytes=sum(
                    one.durable_bytes
                    for other in range(place + 1, until + 1)
                    for one in records[other].measurement.operators
                    if record.acted
                ),
            )
        )
    return steps


def _moment(
    records: Sequence[Record],
    found: Sequence[Bottleneck | None],
    places: Sequence[int],
    last: int = 0,
) -> Moment:
    """The mean latency over these ticks, and the bottleneck over the `last` of them (0: all)."""
    latencies, rows = [], []
    for place in places:
        tick = records[place].measurement
        if tick.latency is not None:
            latencies.append(tick.latency.mean_s)
            rows.append(max(tick.processed_rate * tick.interval_s, 1e-9))
    told = [one for place in places if (one := found[place])][-last:]
    return Moment(
        latency_s=float(np.average(latencies, weights=rows)) if latencies else None,
        load=float(np.mean([one.load for one in told])) if told else None,
        capacity_rate=float(np.mean([one.capacity_rate for one in told])) if told else None,
        bottleneck=told[-1].operator if told else None,
    )


def _fetched(records: Sequence[Record]) -> list[tuple[str, int]]:
    """Bytes of state that the nodes of each operator fetched, largest first, without zeros."""
    total: dict[str, int] = {}
    for record in records:
        for one in record.measurement.operators:
            total[one.name] = total.get(one.name, 0) + one.durable_bytes
    return sorted(((n, b) for n, b in total.items() if b), key=lambda pair: (-pair[1], pair[0]))
