"""The records of pipelines as Prometheus metrics.

The names follow Prometheus's conventions: base units, `_total` for what only grows. A value that is
not known is left out, because a 0 would be a claim. RunTotals count from when the page began.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from tidegate.control.notice import KINDS
from tidegate.control.record import Record
from tidegate.view.live.totals import ACTIONS, RunTotals

Labels = Mapping[str, str]
Values = Iterator[tuple[Labels, float | None]]
_NO_LABELS: Labels = {}
_SURROGATES = re.compile("[\ud800-\udfff]")
"""Halves of characters, which cannot be encoded: Spark can hand them on in a query's name."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What metrics are made of: a pipeline, its newest record and its sums."""

    name: str
    record: Record
    totals: RunTotals
    most_cores: int | None
    """The bound that the user gave; None where the records do not tell."""
    up: bool
    """Whether the last tick did not fail."""


@dataclass(frozen=True, slots=True)
class _Described:
    name: str
    kind: str
    help: str
    values: Callable[[Watched], Values]


def _one(value: Callable[[Watched], float | None]) -> Callable[[Watched], Values]:
    def values(seen: Watched) -> Values:
        yield _NO_LABELS, value(seen)

    return values


def _cores(seen: Watched) -> Values:
    tick = seen.record.measurement
    yield {"state": "wanted"}, tick.cores_asked
    yield {"state": "granted"}, tick.cores_granted
    yield {"state": "busy"}, tick.busy_of_granted


def _lag_rows(seen: Watched) -> Values:
    for segment in seen.record.measurement.segments:
        for one in segment.lag.partitions if segment.lag is not None else ():
            labels = {"query": segment.name, "topic": one.topic, "partition": str(one.partition)}
            yield labels, one.behind_rows


def _tasks(seen: Watched) -> Values:
    for one in seen.record.measurement.operators:
        yield {"operator": one.name}, one.tasks


def _state_bytes(seen: Watched) -> Values:
    for one in seen.record.measurement.operators:
        if one.state_bytes or (one.route and not one.dealt):
            yield {"operator": one.name}, one.state_bytes


def _decisions(seen: Watched) -> Values:
    for action in ACTIONS:
        yield {"action": action}, seen.totals.decisions[action]


def _noticed(seen: Watched) -> Values:
    for kind in KINDS:
        yield {"kind": kind}, float(kind in seen.totals.noticed)


def _shed(seen: Watched) -> Values:
    for name, rows in seen.totals.shed.items():
        yield {"class": name}, rows


def _late(seen: Watched) -> Values:
    for name, rows in seen.totals.late.items():
        yield {"operator": name}, rows


def _skipped(seen: Watched) -> Values:
    for name, rows in seen.totals.skipped.items():
        yield {"operator": name}, rows


def _forecast(seen: Watched) -> float | None:
    return seen.record.beliefs.get("forecast_rate")


_LATENCY = (
    "tidegate_latency_seconds",
    "Time from the arrival of a row until all that was derived from it is done.",
)
_DESCRIBED = (
    _Described(
        "tidegate_judged_latency_seconds",
        "gauge",
        "The latency that is compared with the target: its mean or percentile, or the time since"
        " the last batch while none ends.",
        _one(lambda seen: seen.totals.judged_s),
    ),
    _Described(
        "tidegate_target_seconds",
        "gauge",
        "The latency that is to be held.",
        _one(lambda seen: seen.record.target_s),
    ),
    _Described("tidegate_cores", "gauge", "Cores, by state: wanted, granted or busy.", _cores),
    _Described(
        "tidegate_cores_most",
        "gauge",
        "The most cores that the pipeline may have.",
        _one(lambda seen: seen.most_cores),
    ),
    _Described(
        "tidegate_arrival_rows_per_second",
        "gauge",
        "Rows that arrived per second of the last tick.",
        _one(lambda seen: seen.record.measurement.arrival_rate),
    ),
    _Described(
        "tidegate_forecast_rows_per_second",
        "gauge",
        "Rows per second that are expected up to the horizon of the forecast.",
        _one(_forecast),
    ),
    _Described(
        "tidegate_backlog_rows",
        "gauge",
        "Rows that have arrived and are not completed.",
        _one(lambda seen: seen.record.measurement.backlog_rows),
    ),
    _Described(
        "tidegate_lag_rows",
        "gauge",
        "Rows that the newest batch left in a partition of its source.",
        _lag_rows,
    ),
    _Described(
        "tidegate_lag_seconds",
        "gauge",
        "Time in which as many rows arrive as the most delayed query is behind.",
        _one(lambda seen: seen.record.measurement.lag_s),
    ),
    _Described("tidegate_tasks", "gauge", "Tasks of an operator.", _tasks),
    _Described("tidegate_state_bytes", "gauge", "Size of an operator's state.", _state_bytes),
    _Described(
        "tidegate_keep_ratio",
        "gauge",
        "Fraction of the rows that the next micro-batch does not shed.",
        _one(lambda seen: seen.record.measurement.keep),
    ),
    _Described(
        "tidegate_notice_active",
        "gauge",
        "1 from the beginning of a notice to its end, else 0, by kind.",
        _noticed,
    ),
    _Described(
        "tidegate_control_up",
        "gauge",
        "1 if the last tick of the control loop worked, else 0.",
        _one(lambda seen: float(seen.up)),
    ),
    _Described(
        "tidegate_last_tick_timestamp_seconds",
        "gauge",
        "When the last tick ended that did not fail, in seconds since the epoch.",
        _one(lambda seen: seen.record.measurement.at_s),
    ),
    _Described(
        "tidegate_decisions",
        "counter",
        "Ticks by what they came to; one tick may do several things.",
        _decisions,
    ),
    _Described("tidegate_rows", "counter", "Rows completed.", _one(lambda seen: seen.totals.rows)),
    _Described(
        "tidegate_rows_arrived",
        "counter",
        "Rows that arrived.",
        _one(lambda seen: seen.totals.arrived_rows),
    ),
    _Described("tidegate_rows_shed", "counter", "Rows that were dropped, by class.", _shed),
    _Described(
        "tidegate_rows_late",
        "counter",
        "Rows that came too late for an operator with event time.",
        _late,
    ),
    _Described(
        "tidegate_rows_skipped",
        "counter",
        "Rows that an operator's function could not process and that were left out.",
        _skipped,
    ),
    _Described(
        "tidegate_core_seconds",
        "counter",
        "Core-seconds that were granted, busy or not.",
        _one(lambda seen: seen.totals.core_seconds),
    ),
    _Described(
        "tidegate_control_failures",
        "counter",
        "Ticks of the control loop that failed.",
        _one(lambda seen: seen.totals.failures),
    ),
)


class RecordCollector(Collector):
    """Makes the metrics of all pipelines at the moment at which they are asked for."""

    def __init__(self, watched: Callable[[], Iterable[Watched]]) -> None:
        self._watched = watched

    def collect(self) -> Iterator[Metric]:
        """Every metric that has a value."""
        pipelines = list(self._watched())
        metrics = [_latency(pipelines), *(_metric(one, pipelines) for one in _DESCRIBED)]
        return (metric for metric in metrics if metric.samples)


class Exposition:
    """The text that Prometheus reads, from a registry of its own."""

    def __init__(self, watched: Callable[[], Iterable[Watched]]) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(RecordCollector(watched))

    def text(self, accept: str = "") -> tuple[bytes, str]:
        """The text in the format that is accepted, and the name of that format."""
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type


def _latency(pipelines: Iterable[Watched]) -> Metric:
    metric = Metric(*_LATENCY, "summary")
    for seen in pipelines:
        labels = {"pipeline": _text(seen.name)}
        latency, name = seen.record.measurement.latency, _LATENCY[0]
        if latency is not None:
            for quantile, value in (
                ("0.5", latency.p50_s),
                ("0.95", latency.p95_s),
                ("0.99", latency.p99_s),
            ):
                metric.add_sample(name, {**labels, "quantile": quantile}, value)
        if seen.totals.latency_rows > 0.0:
            metric.add_sample(f"{name}_count", labels, round(seen.totals.latency_rows))
            metric.add_sample(f"{name}_sum", labels, seen.totals.latency_row_seconds)
    return metric


def _metric(described: _Described, pipelines: Iterable[Watched]) -> Metric:
    metric = Metric(described.name, described.help, described.kind)
    name = f"{described.name}_total" if described.kind == "counter" else described.name
    for seen in pipelines:
        for labels, value in described.values(seen):
            if value is not None:
                told = {label: _text(text) for label, text in labels.items()}
                metric.add_sample(name, {"pipeline": _text(seen.name), **told}, float(value))
    return metric


def _text(value: str) -> str:
    """A label that can be encoded; Prometheus's own characters are escaped by the encoder."""
    return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", value)
