"""A pipeline that can be put behind a source that is always full, to measure its capacity."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from tidegate.errors import AskedWrongly
from tidegate.pipelines.graph import MAIN, Sink, Source
from tidegate.pipelines.stream import Stream


@dataclass(frozen=True, slots=True, kw_only=True)
class FullFlow:
    """A pipeline without its own source."""

    name: str
    behind: Callable[[SparkSession, Path, int], Stream]
    """Puts it behind a full source, whose batches have as many rows as the file says (see
    `batch_size`), read by so many tasks."""
    stretched: bool = False
    """Whether its operators take their time by waiting."""
    most_tasks: int | None = None
    """More tasks than this make nothing faster; None: no bound is known."""
    target_s: float | None = None
    """The mean latency that it usually has to keep; None: it says none."""

    def check_cores(self, largest: int) -> None:
        """Refuse more cores than its operators can have tasks."""
        if self.most_tasks is not None and largest > self.most_tasks:
            raise AskedWrongly(
                f"'{self.name}' has at most {self.most_tasks} tasks in an operator, so {largest}"
                " cores cannot be measured; give fewer"
            )


def without_sinks(stream: Stream) -> Stream:
    """The same pipeline, whose sinks take all rows and keep none.

    A calibration must not write its made-up load where real answers are.
    """
    nodes = stream.graph.nodes
    for name, node in list(nodes.items()):
        if isinstance(node, Sink):
            nodes[name] = Sink(name=name, inputs=node.inputs, schema=node.schema, format="noop")
    return stream


def check_form(stream: Stream, name: str) -> None:
    """Refuse a pipeline whose throughput one full source cannot show."""
    graph = stream.graph
    graph.check()
    sources = [one.name for one in graph.nodes.values() if isinstance(one, Source)]
    if len(sources) != 1:
        raise AskedWrongly(
            f"the pipeline of {name} has {len(sources)} sources; a calibration fills one, so give a"
            " pipeline with one source"
        )
    apart = [one.name for one in graph.segments() if one.name != MAIN]
    if apart:
        raise AskedWrongly(
            f"the pipeline of {name} is cut before '{apart[0]}', and its segments run at the same"
            " time; leave .cut(...) out to calibrate it"
        )
