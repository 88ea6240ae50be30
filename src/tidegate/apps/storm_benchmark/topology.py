"""What the five topologies have in common: a spout of lines, two operators, and a check.

Intel's benchmark reads lines from Kafka or from a file. Here a map makes them from the numbers of
the source's rows, so the operators run behind any source with the columns of `arrivals`: one that
follows a rate, or one that is always full.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from tidegate.apps.application import Application, BuiltApplication, Settings, Verdict
from tidegate.apps.collected import Collected
from tidegate.apps.event_progress import EventProgress
from tidegate.apps.stretching import Stretched, stretched_map
from tidegate.pipelines.derived import Derived
from tidegate.pipelines.functions.times import times_of
from tidegate.pipelines.keyed import KeyedFunction
from tidegate.pipelines.stream import Stream, pipeline
from tidegate.spark.sources.arrivals import arrivals
from tidegate.spark.state.read import read_state
from tidegate.workload.profile import Ints, Profile

SPOUT = "lines"
SCHEMA = "seq long, at timestamp, line string"
"""The number of a line, its event time, and its text."""
TASKS = (1, 24)
SHARDS = 64
EVENT_TIME = pa.timestamp("us", "UTC")
_AT_A_TIME = 65_536
_SAMPLE = 10_000

Lines = Callable[[Ints], pa.Array]
"""The lines with these numbers."""
TimedLine = tuple[int, str]
"""When a line arrives, in microseconds since the start, and its text."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What a run leaves behind."""

    state: pa.Table | None
    """The state of the keyed operator; None if the topology has none."""
    emitted: pa.Table | None
    """The rows that reached the sink; None if there is no sink or no row."""
    progress: EventProgress | None = None
    """How far the event time of the keyed operator came; None without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """One of the five."""

    name: str
    stretched_s: Mapping[str, float]
    """Seconds per tuple of each operator, modelled after the peaks of MST's table II."""
    lines: Callable[[Settings], Lines]
    operators: Callable[[Stream, Settings], Stream]
    """Puts the operators behind the lines."""
    check: Callable[[Settings, Answers], Verdict]
    """Compares the answers with a sequential computation."""
    keyed: str | None
    """The operator whose state is part of the answers."""
    emits: bool
    """Whether emitted rows are part of the answers."""
    single: tuple[str, ...] = ()
    """Operators that have one task."""

    def behind(self, source: Stream, settings: Settings, rate: Profile | None = None) -> Stream:
        """Spout and operators behind a source; the sink is left to the caller.

        With `rate` the event time of a line follows from its number, as time since the start, so
        that a reference can know it. Without, it is the time stamp of the source's row.
        """
        spout = spout_of(self.lines(settings), rate)
        return self.operators(source.map(spout, SCHEMA, name=SPOUT), settings)

    def full(self, source: Stream, settings: Settings) -> Stream:
        """Spout and operators behind any source, with an end but no answers that are kept."""
        stream = self.behind(source, settings, settings.rate)
        return stream.to("noop", name="answers") if self.emits else stream

    def build(self, spark: SparkSession, settings: Settings, place: Path) -> BuiltApplication:
        """The application over lines that arrive by the settings' rate."""
        rows = arrivals(
            spark, settings.rate, seed=settings.seed, seconds=settings.seconds, partitions=2
        )
        source = pipeline(self.name, rows, arrival="timestamp")
        stream = self.behind(source, settings, settings.rate)
        collected = Collected(place)
        if self.emits:
            stream = stream.to(collected, name="answers")

        def verify(checkpoint: str) -> Verdict:
            if self.keyed is None:
                return self.check(settings, Answers(None, collected.rows()))
            state = read_state(checkpoint, self.keyed)
            progress = EventProgress.of(checkpoint, self.keyed)
            return self.check(settings, Answers(state, collected.rows(), progress))

        return BuiltApplication(stream=stream, verify=verify)

    def application(
        self,
        *,
        about: str,
        rate: str,
        options: Mapping[str, str],
        read_options: Callable[[Mapping[str, str]], object],
    ) -> Application:
        """What `tidegate app` lists and runs."""
        named = tuple(self.stretched_s)
        return Application(
            name=self.name,
            paper="MST IV-A",
            about=about,
            rate=rate,
            target="5 seconds",
            cores=(1, 8),
            operators=named,
            stretched_s=self.stretched_s,
            most_tasks=lambda _: {one: 1 if one in self.single else TASKS[1] for one in named},
            build=self.build,
            options=options,
            read_options=read_options,
            behind=self.full,
        )


def spout_of(lines: Lines, rate: Profile | None) -> Callable[[pa.Table], pa.Table]:
    """A map from rows of a source to lines."""

    def spout(rows: pa.Table) -> pa.Table:
        numbers = rows["seq"].to_numpy()
        at = rows["timestamp"] if rate is None else times_of(rate.arrival_us(numbers), EVENT_TIME)
        return pa.table({"seq": rows["seq"], "at": at, "line": lines(numbers)})

    return spout


def mapped(
    stream: Stream,
    name: str,
    function: Callable[[pa.Table], pa.Table | Derived],
    schema: str,
    row_s: float | None,
) -> Stream:
    """A stateless operator of a topology, with tasks of its own."""
    return stream.map(stretched_map(function, row_s), schema, name=name, tasks=TASKS)


def keyed(
    stream: Stream, name: str, function: KeyedFunction, key: str, row_s: float | None
) -> Stream:
    """A stateful operator of a topology."""
    return stream.keyed(name, Stretched(function, row_s), key=key, shards=SHARDS, tasks=TASKS)


def arrived(lines: Lines, settings: Settings) -> Iterator[TimedLine]:
    """All lines of a run, one after the other."""
    for first in range(0, settings.arrived, _AT_A_TIME):
        numbers = np.arange(first, min(first + _AT_A_TIME, settings.arrived), dtype=np.int64)
        at_us = settings.rate.arrival_us(numbers).tolist()
        yield from zip(at_us, lines(numbers).to_pylist(), strict=True)


def line_bytes(lines: Lines) -> float:
    """Bytes of a line with its end, on average: what turns lines per second into the paper's MB."""
    sample = lines(np.arange(_SAMPLE, dtype=np.int64))
    return float(pc.mean(pc.binary_length(sample)).as_py()) + 1.0
