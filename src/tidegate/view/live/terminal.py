"""A run while it happens: redrawn in place on a terminal, plain lines anywhere else."""

from collections import deque
from types import TracebackType
from typing import Self

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from tidegate.control.bottleneck import Bottleneck
from tidegate.control.control_failure import ControlFailure
from tidegate.control.measurement import Latency
from tidegate.control.record import Record
from tidegate.units import exact_duration, format_duration, format_share
from tidegate.view.changes import again, changes_of, outcome_of, words_of
from tidegate.view.judge import Statistic, judged_s
from tidegate.view.lag import lag_words
from tidegate.view.live.sparkline import sparkline
from tidegate.view.sizes import readable

HISTORY = 48
"""The number of ticks in a sparkline."""
DECISIONS = 5
"""How many of the last decisions are shown."""
NOTES = 3
"""How many of the last notes are shown."""
OPERATORS = 12
"""How many operators are shown, those with the most tasks first."""
_AROUND = 17
"""Columns of the picture besides the words of a figure and its sparkline."""
_FEWEST_BARS = 8
"""Where there is room for fewer bars than this, there are none."""
_UNEVEN = 1.2
"""From this imbalance on, a line says that the tasks of an operator differ."""


class LiveView:
    """Shows records one after the other; use it as a context manager.

    On a terminal it redraws the same place. In a file, a pipe or a terminal that cannot move its
    cursor it prints one plain line per tick.
    """

    def __init__(
        self,
        console: Console,
        target_s: float | None,
        title: str,
        *,
        statistic: Statistic = "mean",
        seconds: float | None = None,
    ) -> None:
        """`seconds` is how long the run takes, if that is known beforehand."""
        self._console = console
        self._seconds = seconds
        self._target_s = target_s
        self._title = title
        self._statistic = statistic
        self._start_s: float | None = None
        self._loads: deque[float] = deque(maxlen=HISTORY)
        self._latencies: deque[float] = deque(maxlen=HISTORY)
        self._latency: Text | None = None
        self._decided: deque[tuple[float, Record]] = deque(maxlen=DECISIONS)
        self._wish: Record | None = None
        self._bottleneck: Bottleneck | None = None
        self._notes: dict[str, float] = {}
        self._live: Live | None = None
        self._shown: RenderableType | None = None
        """The picture of the last record, which stays below the message when control fails."""
        if console.is_terminal and not console.is_dumb_terminal:
            # Redrawn when there is a new record, not by a clock.
            self._live = Live(console=console, auto_refresh=False)

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, record: Record) -> None:
        """Show one tick."""
        tick = record.measurement
        if self._start_s is None:
            self._start_s = tick.at_s - tick.interval_s
        elapsed_s = tick.at_s - self._start_s
        if self._live is None:
            line = self._line(elapsed_s, record)
            self._console.print(Text(line), soft_wrap=True, highlight=False)
        self._remember(elapsed_s, record)
        if self._live is not None:
            self._shown = self._picture(elapsed_s, record)
            self._live.update(self._shown, refresh=True)

    def show_failure(self, failure: ControlFailure) -> None:
        """Show that nothing controls the pipeline at the moment; the next record ends this."""
        if self._live is None:
            self._console.print(Text(f"CONTROL FAILS | {failure.words}"), soft_wrap=True)
            return
        words = Text(failure.words, style="bold red")
        shown: list[RenderableType] = [words]
        if self._shown is not None:
            shown = [words, "", self._shown]
        self._live.update(Group(*shown), refresh=True)

    def _remember(self, elapsed_s: float, record: Record) -> None:
        tick = record.measurement
        self._bottleneck = record.bottleneck or self._bottleneck
        self._loads.append(tick.arrival_rate)
        if tick.latency is not None:
            self._latencies.append(self._judged_s(tick.latency))
        if changes_of(record):
            if again(self._wish, record):
                self._decided.pop()
            self._decided.append((elapsed_s, record))
            self._wish = record
        for note in record.decision.notes:
            # Removed first, so that the newest note comes last and is dropped last.
            self._notes.pop(note, None)
            self._notes[note] = elapsed_s
        while len(self._notes) > NOTES:
            del self._notes[next(iter(self._notes))]

    def _judged_s(self, latency: Latency) -> float:
        return judged_s(latency, self._statistic)

    def _target(self, record: Record) -> float | None:
        return self._target_s if record.target_s is None else record.target_s

    def _line(self, elapsed_s: float, record: Record) -> str:
        """A tick in one line, with the reason of a change and with notes that are new."""
        tick = record.measurement
        target_s = self._target(record)
        parts = [f"{elapsed_s:5.0f} s", f"{tick.arrival_rate:,.0f} rows/s"]
        if tick.latency is None:
            parts.append("latency -")
        else:
            parts.append(f"latency {_latency(tick.latency)}")
            if target_s is not None:
                late = self._judged_s(tick.latency) > target_s
                parts.append(f"{'LATE, ' if late else ''}target {exact_duration(target_s)}")
        cores = f"{tick.cores_granted} cores"
        if tick.cores_asked != tick.cores_granted:
            cores += f" of {tick.cores_asked} asked for"
        if tick.busy_of_granted is not None:
            cores += f", {tick.busy_of_granted:.1f} busy"
        parts.append(cores)
        if tick.operators:
            parts.append("tasks " + ", ".join(f"{one.name} {one.tasks}" for one in tick.operators))
            fullest = max(one.imbalance for one in tick.operators)
            if fullest >= _UNEVEN:
                parts.append(f"the fullest task has {_more(fullest)} more than the mean")
        late_rows = sum(one.late_rows for one in tick.operators)
        if late_rows:
            parts.append(f"late rows {late_rows:,d}")
        skipped_rows = sum(one.skipped_rows for one in tick.operators)
        if skipped_rows:
            parts.append(f"rows skipped because a function failed on them {skipped_rows:,d}")
        if record.bottleneck is not None:
            parts.append(_bottleneck(record.bottleneck))
        parts.append(f"{tick.backlog_rows:,.0f} rows waiting")
        if tick.lag_rows:
            parts.append(f"left in the source: {lag_words(tick)}")
        if tick.stale is not None:
            parts.append(f"old numbers: {tick.stale}")
        if changes_of(record) and not again(self._wish, record):
            parts.append(f"{words_of(record)} ({outcome_of(record)}): {record.decision.reason}")
        parts += [f"note: {note}" for note in record.decision.notes if note not in self._notes]
        return " | ".join(parts)

    def _picture(self, elapsed_s: float, record: Record) -> RenderableType:
        parts: list[RenderableType] = [self._figures(record)]
        if record.measurement.operators:
            parts += ["", _operators(record)]
        parts += ["", self._decisions(record)]
        elapsed = f"{elapsed_s:,.0f} s"
        if self._seconds is not None:
            elapsed = f"{min(elapsed_s, self._seconds):,.0f} of {self._seconds:,.0f} s"
        return Panel(
            Group(*parts),
            title=Text(self._title, style="bold"),
            subtitle=Text(f"{elapsed}, policy {record.policy}"),
            title_align="left",
            subtitle_align="right",
            box=box.ROUNDED,
        )

    def _figures(self, record: Record) -> Table:
        tick = record.measurement
        plain = self._console.options.ascii_only
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="dim", no_wrap=True)
        grid.add_column()
        grid.add_column(no_wrap=True)
        load = f"{tick.arrival_rate:,.0f} rows/s arrive, {tick.processed_rate:,.0f} are done"
        latency = self._latency_words(record)
        room = self._console.width - _AROUND - max(len(load), len(latency))
        shown = min(room, HISTORY) if room >= _FEWEST_BARS else 0
        loads = list(self._loads)[-shown:] if shown else []
        latencies = list(self._latencies)[-shown:] if shown else []
        grid.add_row("load", load, Text(sparkline(loads, plain=plain), style="cyan"))
        target_s = self._target(record)
        top_s = max([*latencies, target_s or 0.0], default=0.0)
        bars = Text()
        for latency_s in latencies:
            late = target_s is not None and latency_s > target_s
            bar = sparkline([latency_s], top=top_s, plain=plain)
            bars.append(bar, style="bold red" if late else "green")
        grid.add_row("latency", latency, bars)
        at_work = tick.busy_of_granted
        busy = "" if at_work is None else f", {at_work:.1f} busy"
        waiting = tick.cores_granted < tick.cores_asked
        asked = f", {tick.cores_asked} asked for" if tick.cores_asked != tick.cores_granted else ""
        cores = f"{tick.cores_granted} granted{asked}{busy}"
        grid.add_row("cores", Text(cores, style="yellow" if waiting else ""))
        limit = ", more than is done in time" if tick.saturated else ""
        grid.add_row("waiting", f"{tick.backlog_rows:,.0f} rows{limit}")
        lag = lag_words(tick)
        if lag is not None:
            grid.add_row("in source", lag)
        if self._bottleneck is not None:
            style = "yellow" if self._bottleneck.limits else ""
            grid.add_row("limit", Text(_bottleneck(self._bottleneck), style=style))
        if tick.stale is not None:
            grid.add_row("old data", Text(tick.stale, style="yellow"))
        return grid

    def _latency_words(self, record: Record) -> Text:
        """The last latency measured; a tick in which no batch ended has none of its own."""
        latency, target_s = record.measurement.latency, self._target(record)
        if latency is not None:
            words = Text(_latency(latency))
            if target_s is not None:
                late = self._judged_s(latency) > target_s
                verdict, style = ("LATE", "bold red") if late else ("on time", "green")
                words.append(f", target {exact_duration(target_s)}: ").append(verdict, style=style)
            self._latency = words
        if self._latency is None:
            return Text("no batch has ended yet")
        return self._latency

    def _decisions(self, record: Record) -> Table:
        table = Table.grid(padding=(0, 2))
        table.add_column(style="dim", justify="right", no_wrap=True)
        table.add_column()
        for at_s, past in self._decided:
            words = Text(words_of(past), style="bold" if past.acted else "")
            if not past.acted:
                words.append(f" ({outcome_of(past)})", style="yellow")
            table.add_row(
                f"{at_s:,.0f} s", words.append(f": {past.decision.reason}", style="not bold")
            )
        if not changes_of(record):
            table.add_row("now", Text(f"no change: {record.decision.reason}", style="dim"))
        for note, at_s in self._notes.items():
            table.add_row(f"{at_s:,.0f} s", Text(f"note: {note}", style="yellow"))
        return table


def _latency(latency: Latency) -> str:
    return f"mean {format_duration(latency.mean_s)}, 95 % within {format_duration(latency.p95_s)}"


def _more(imbalance: float) -> str:
    """By how much the fullest task has more than the mean."""
    return format_share(max(imbalance - 1.0, 0.0))


def _bottleneck(bottleneck: Bottleneck) -> str:
    """The bottleneck in a few words; the record has the whole sentence."""
    which = "limits" if bottleneck.limits else "would be the first limit"
    others = f" (and {', '.join(bottleneck.beside)})" if bottleneck.beside else ""
    tasks = "1 task" if bottleneck.tasks == 1 else f"{bottleneck.tasks} tasks"
    return (
        f"{bottleneck.operator}{others} {which}: rows come at {format_share(bottleneck.load)} of"
        f" what its {tasks} can process; one more task would raise that by"
        f" {format_share(bottleneck.gain)}"
    )


def _operators(record: Record) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, show_edge=False)
    table.add_column("operator", overflow="fold")
    tick = record.measurement
    late = ["late rows"] if any(one.late_rows for one in tick.operators) else []
    for label in ("tasks", "rows/s", "busy cores", "fullest task", "state", *late):
        table.add_column(label, justify="right", min_width=max(map(len, label.split())))
    fullest = sorted(tick.operators, key=lambda one: -one.tasks)[:OPERATORS]
    for one in (operator for operator in tick.operators if operator in fullest):
        busy = one.busy_s / tick.interval_s if tick.interval_s else 0.0
        table.add_row(
            Text(one.name),
            f"{one.tasks:d}",
            f"{one.arrival_rate:,.0f}",
            f"{busy:.1f}",
            f"+{_more(one.imbalance)}",
            readable(one.state_bytes) if (one.route and not one.dealt) or one.state_bytes else "-",
            *(f"{one.late_rows:,d}" for _ in late),
        )
    left_out = len(tick.operators) - len(fullest)
    if left_out > 0:
        table.add_row(f"and {left_out} more")
    return table
