"""The graph of a pipeline: its named nodes, and the segments that cuts divide it into."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa

from tidegate.errors import AskedWrongly, TidegateError
from tidegate.pipelines.derived import Derived
from tidegate.pipelines.keyed import BoundKeyed
from tidegate.pipelines.packing import Packing
from tidegate.pipelines.shedding import Shedding

MAX_SHARDS = 1 << 16
AsideKind = Literal["late", "failed"]
OnError = Literal["fail", "skip"]
MAIN = "main"
"""The segment of the first source; other segments are named by the source or channel they read."""


@dataclass(frozen=True, slots=True)
class TaskBounds:
    """How many tasks an operator may have; `most` None: no upper bound."""

    least: int = 1
    most: int | None = None

    def clamp(self, tasks: int) -> int:
        """The nearest allowed number."""
        return max(self.least, tasks if self.most is None else min(tasks, self.most))


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A step with a name and the columns that leave it."""

    name: str
    inputs: tuple[str, ...]
    schema: pa.Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Source(Node):
    """A streaming DataFrame."""

    frame: Any
    arrival: str | None = None
    """The column that says when a row arrived."""
    shedding: Shedding | None = None
    """How it may be shed; None: the pipeline does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Map(Node):
    """A stateless operator: Arrow table in, Arrow table out."""

    function: Callable[[pa.Table], pa.Table | Derived]
    tasks: TaskBounds | None = None
    """None: it runs where its rows already are."""
    on_error: OnError = "fail"
    """What happens to rows that its function cannot process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyed(Node):
    """A stateful operator, partitioned by key."""

    key: tuple[str, ...]
    rows: pa.Schema
    """The columns that enter it."""
    bound: BoundKeyed
    shards: int
    tasks: TaskBounds
    order_by: str | None = None
    ttl_us: int | None = None
    on_error: OnError = "fail"
    """What happens to the rows of keys that its function cannot process."""

    @property
    def key_schema(self) -> pa.Schema:
        """The key columns."""
        return pa.schema([self.rows.field(name) for name in self.key])


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge(Node):
    """Puts branches with the same columns together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed(Merge):
    """Puts branches with any columns into one table, for a keyed operator with several inputs.

    The inputs are those of the packing, in its order; one branch may be several of them.
    """

    packing: Packing


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside(Node):
    """The rows that an operator puts aside, as a stream of their own."""

    kind: AsideKind


@dataclass(frozen=True, slots=True)
class Topic:
    """A Kafka topic that holds the rows of a channel."""

    servers: str
    name: str | None = None
    """None: a topic of the checkpoint's own."""
    partitions: int = 8
    settings: tuple[tuple[str, str], ...] = ()
    """Further settings of Kafka's client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel(Node):
    """A durable log between segments: a cut or a loop writes it, another segment reads it.

    A cut has its input from the start; a loop gets its inputs when something is fed back.
    """

    loop: bool = False
    topic: Topic | None = None
    """Where its rows are; None: in files of the checkpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink(Node):
    """An end: a function of (DataFrame, batch id), or a Spark batch format with its options."""

    write: Callable[[Any, int], object] | None = None
    format: str | None = None
    options: tuple[tuple[str, str], ...] = ()
    retries: int = 0
    """How often a batch tries it again before the run fails."""


@dataclass(frozen=True, slots=True)
class Write:
    """What a segment writes into a channel."""

    channel: Channel
    inputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Segment:
    """Operators between two cuts: one streaming query."""

    name: str
    nodes: tuple[Node, ...]
    """Every node comes after its inputs."""
    reads: tuple[Node, ...]
    """Sources and channels it reads."""
    writes: tuple[Write, ...]
    """Channels it writes."""

    @property
    def keyed(self) -> tuple[Keyed, ...]:
        """Its stateful operators."""
        return tuple(node for node in self.nodes if isinstance(node, Keyed))


@dataclass(slots=True)
class Graph:
    """All nodes of one pipeline, by name, in the order in which they were written."""

    name: str
    nodes: dict[str, Node] = field(default_factory=dict)
    feeds: dict[str, list[str]] = field(default_factory=dict)
    """For each loop, the nodes that are fed back into it."""

    def add(self, node: Node) -> None:
        """A new node; a name may be used once."""
        if not node.name or not all(c.isalnum() or c in "_-" for c in node.name):
            raise AskedWrongly(
                f"the name '{node.name}' is not usable; use letters, digits, '_' and '-' "
                "(it names files of the checkpoint)"
            )
        if node.name == MAIN and isinstance(node, Source | Channel):
            kind = "source" if isinstance(node, Source) else "loop" if node.loop else "cut"
            raise AskedWrongly(
                f"the {kind} '{MAIN}' would name a segment, but '{MAIN}' is the segment of the "
                f"first source; give the {kind} another name"
            )
        if node.name in self.nodes:
            raise AskedWrongly(
                f"the name '{node.name}' is used twice in pipeline '{self.name}'; "
                "give one of them another name"
            )
        self.nodes[node.name] = node

    def free_name(self, wish: str) -> str:
        """A name that is not taken: the wish, or the wish with a number appended."""
        wish = "".join(c if c.isalnum() or c in "_-" else "_" for c in wish).strip("_") or "map"
        if wish not in self.nodes:
            return wish
        return next(
            n for i in range(2, len(self.nodes) + 3) if (n := f"{wish}_{i}") not in self.nodes
        )

    def writers(self, channel: Channel) -> tuple[str, ...]:
        """The nodes whose rows go into a channel."""
        return channel.inputs + tuple(self.feeds.get(channel.name, ()))

    def check(self) -> None:
        """Refuse mistakes that only show when the pipeline is complete."""
        for node in self.nodes.values():
            if isinstance(node, Channel) and not self.writers(node):
                raise AskedWrongly(
                    f"nothing is fed back into the loop '{node.name}'; end a branch with "
                    ".feed(loop) or remove the loop"
                )
        for channel in self._channels():
            for writer in filter(self._is_channel, self.writers(channel)):
                raise AskedWrongly(
                    f"'{writer}' leads straight into '{channel.name}', with no operator between "
                    "the two channels; leave one of them out"
                )
        segment_of = {n.name: segment.name for segment in self.segments() for n in segment.nodes}
        for channel in self._channels():
            segments = sorted({segment_of[name] for name in self.writers(channel)})
            if len(segments) > 1:
                raise AskedWrongly(
                    f"the loop '{channel.name}' is fed from the segments {' and '.join(segments)}; "
                    "merge what goes back before the cut, or use one loop for each"
                )
        if not any(isinstance(node, Sink | Keyed) for node in self.nodes.values()):
            raise AskedWrongly(
                f"pipeline '{self.name}' has no end: add a sink with .to(...) or a keyed operator"
            )

    def segments(self) -> tuple[Segment, ...]:
        """Cut the graph at its channels; nodes that stay connected are one segment."""
        group = {name: name for name in self.nodes if not self._is_channel(name)}

        def root(name: str) -> str:
            while group[name] != name:
                name = group[name]
            return name

        for name in group:
            for other in self.nodes[name].inputs:
                if not self._is_channel(other):
                    group[root(name)] = root(other)
        # Readers of one channel are one segment: it is read once.
        for channel in self._channels():
            readers = [name for name in group if channel.name in self.nodes[name].inputs]
            for reader in readers[1:]:
                group[root(reader)] = root(readers[0])
        members: dict[str, list[str]] = {}
        for name in group:
            members.setdefault(root(name), []).append(name)
        found = tuple(self._segment(names) for names in members.values())
        if len({segment.name for segment in found}) < len(found):
            raise TidegateError(
                f"two segments of pipeline '{self.name}' have the same name, so one would take the "
                f"other's place: {', '.join(segment.name for segment in found)}"
            )
        return found

    def _segment(self, names: list[str]) -> Segment:
        nodes = tuple(self._ordered(names))
        wanted = {name for node in nodes for name in node.inputs}
        reads = [n for n in self.nodes.values() if n.name in wanted and isinstance(n, Channel)]
        sources = [n for n in nodes if isinstance(n, Source)]
        writes = tuple(
            Write(channel, inputs)
            for channel in self._channels()
            if (inputs := tuple(name for name in self.writers(channel) if name in names))
        )
        # The first source's segment is the main one; the others are named by what they read.
        main = next(n.name for n in self.nodes.values() if isinstance(n, Source))
        name = MAIN if main in names else (sources or reads)[0].name
        return Segment(name, nodes, (*sources, *reads), writes)

    def _ordered(self, names: list[str]) -> Iterator[Node]:
        """Inputs first: nodes are added after their inputs, so they are in order already."""
        wanted = set(names)
        return (node for name, node in self.nodes.items() if name in wanted)

    def _channels(self) -> list[Channel]:
        return [node for node in self.nodes.values() if isinstance(node, Channel)]

    def _is_channel(self, name: str) -> bool:
        return isinstance(self.nodes[name], Channel)
