"""The state of a pipeline at a glance: on target or late, and six figures."""

from html import escape

from tidegate.control.record import Record
from tidegate.view.live.page.feed import Feed
from tidegate.view.live.page.panel import TextPanel
from tidegate.view.live.page.ticks import behind_s
from tidegate.view.live.page.times import clock_time

_SILENT_TICKS = 10.0
"""A run that was silent for so many ticks is over, or its control loop hangs."""
_LEAST_SILENT_S = 15.0
_STATISTICS = {"mean": "mean", "p50": "median", "p95": "p95", "p99": "p99"}


class HeadlinePanel(TextPanel):
    """A sentence and figures."""

    name = "state"
    title = "At a glance"
    about = ""
    wide = True
    alert = True  # it also says that no record comes

    def html(self) -> str:
        """The sentence, then the figures."""
        record = self.feed.record
        if record is None:
            return '<p class="state">Nothing is measured yet: the pipeline is starting.</p>'
        kind, words = state_of(self.feed, record)
        figures = "".join(
            f"<div><dt>{escape(label)}</dt><dd>{escape(value)}<small>{escape(more)}</small></dd>"
            "</div>"
            for label, value, more in figures_of(self.feed, record)
        )
        return (
            f'<p class="state {kind}" role="status">{escape(words)}</p>'
            f'<dl class="figures">{figures}</dl>'
        )


def state_of(feed: Feed, record: Record) -> tuple[str, str]:
    """`good`, `late` or `unknown`, and the state in a sentence."""
    failure, silent_s = feed.failure, feed.silent_s()
    if failure is not None:
        return "late", failure.words[0].upper() + failure.words[1:] + "."
    if feed.over or silent_s > max(_LEAST_SILENT_S, _SILENT_TICKS * record.measurement.step_s):
        at = clock_time(record.measurement.at_s)
        within = feed.totals.within_target
        held = "" if within is None else f" It was on target {within:.0%} of the time."
        if feed.over:
            return "unknown", f"The run ended at {at} UTC.{held}"
        return "unknown", f"No record since {at} UTC: the run is over, or its driver hangs.{held}"
    latency_s, target_s = feed.totals.judged_s, record.target_s
    statistic = _STATISTICS[feed.totals.statistic]
    if latency_s is None or target_s is None:
        return "unknown", "No row waits and none was completed: there is no latency to judge."
    compared = f"{statistic} latency {latency_s:.2f} s, target {target_s:g} s"
    if latency_s <= target_s:
        return "good", f"On target: {compared}."
    return "late", f"Late: {compared}."


def figures_of(feed: Feed, record: Record) -> list[tuple[str, str, str]]:
    """Label, value, and a remark that is smaller."""
    tick, totals = record.measurement, feed.totals
    within, cost = totals.within_target, totals.cost
    shed = sum(totals.shed.values())
    behind = behind_s(tick)
    waiting = f"{tick.cores_asked} wanted" if tick.cores_asked != tick.cores_granted else ""
    at_work = tick.busy_of_granted
    busy = "" if at_work is None else f"{at_work:.1f} busy"
    most = "" if feed.most_cores is None else f" of {feed.most_cores}"
    return [
        ("time on target", "-" if within is None else f"{within:.1%}", " so far"),
        ("load", f"{tick.arrival_rate:,.0f}", " rows/s"),
        (
            "backlog",
            f"{tick.backlog_rows:,.0f}",
            " rows" + ("" if behind != behind else f", {behind:.1f} s"),
        ),
        ("cores", f"{tick.cores_granted}{most}", _remark(waiting, busy)),
        (
            "cost",
            "-" if cost is None else f"{cost:.0%}",
            " of a static peak",
        ),
        ("rows shed", f"{shed:,d}", "" if tick.keep >= 1.0 else f" keeping {tick.keep:.0%}"),
    ]


def _remark(*parts: str) -> str:
    said = ", ".join(filter(None, parts))
    return f" {said}" if said else ""
