"""The fluent interface of a pipeline: every step takes a stream and returns a stream."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidegate.errors import AskedWrongly, TidegateError
from tidegate.pipelines.channels import channel_topic_of
from tidegate.pipelines.defaults import with_defaults
from tidegate.pipelines.derived import Derived
from tidegate.pipelines.functions.distinct import Deduplication
from tidegate.pipelines.functions.enrich import enrichment_of
from tidegate.pipelines.functions.join import join_of
from tidegate.pipelines.functions.lookup import lookup_of
from tidegate.pipelines.functions.several import several_inputs
from tidegate.pipelines.graph import (
    MAX_SHARDS,
    Aside,
    AsideKind,
    Channel,
    Graph,
    Keyed,
    Map,
    Merge,
    Node,
    Packed,
    Sink,
    Source,
)
from tidegate.pipelines.identity import identity_of
from tidegate.pipelines.keyed import Clock, KeyedFunction, PlainFunction, Times, Update
from tidegate.pipelines.on_error import Given, failed_rows, on_error_of
from tidegate.pipelines.packing import Packing, packing_of
from tidegate.pipelines.schema import (
    Declared,
    arrow_schema,
    require_binary,
    require_columns,
    spark_schema,
)
from tidegate.pipelines.shedding import WEIGHT, ShedClass, shedding_of
from tidegate.pipelines.task_bounds import Tasks, task_bounds
from tidegate.pipelines.timers import refuse_times, require_timer, times_of
from tidegate.units import parse_duration

if TYPE_CHECKING:
    from typing import Unpack

    from pyspark.sql import DataFrame

    from tidegate.spark.options import StartOptions
    from tidegate.spark.run import Run

_starter: "Callable[..., Run] | None" = None


def set_starter(start: "Callable[..., Run]") -> None:
    """Register the function that `Stream.start` calls, so that this package need not import Spark's
    side of Tidegate.
    """
    global _starter
    _starter = start


def pipeline(name: str, frame: "DataFrame", *, arrival: str | None = None) -> "Stream":
    """Start a pipeline that reads a streaming DataFrame.

    `arrival` names the timestamp column with a row's arrival time; latency is measured from it.
    """
    if not isinstance(name, str) or not name.strip():
        raise AskedWrongly(f"a pipeline needs a name, such as 'clicks'; this one got {name!r}")
    _require_stream(frame, f"pipeline '{name}'")
    return Stream(Graph(name)).source(frame, name="source", arrival=arrival)


@dataclass(frozen=True, slots=True)
class Stream:
    """The rows that one step of a pipeline emits."""

    graph: Graph
    node: str = ""

    @property
    def schema(self) -> pa.Schema:
        """The columns of these rows."""
        return self.graph.nodes[self.node].schema

    def source(self, frame: "DataFrame", *, name: str, arrival: str | None = None) -> "Stream":
        """Add another streaming DataFrame to the pipeline; `merge` it where it is needed."""
        _require_stream(frame, f"source '{name}'")
        schema = arrow_schema(frame.schema)
        if arrival is not None:
            require_columns((arrival,), schema, f"source '{name}'")
            if not pa.types.is_timestamp(schema.field(arrival).type):
                raise AskedWrongly(
                    f"source '{name}': the arrival column '{arrival}' is "
                    f"{schema.field(arrival).type}, expected a timestamp"
                )
        return self._add(Source(name=name, inputs=(), schema=schema, frame=frame, arrival=arrival))

    def shed(
        self,
        *,
        by: str | None = None,
        classes: Mapping[str, ShedClass] | None = None,
        key: str | list[str] | tuple[str, ...] = (),
        shards: int = 256,
        weight: bool = False,
        unique: str | list[str] | tuple[str, ...] = (),
    ) -> "Stream":
        """Declare how rows of this source may be shed, before the first operator, in an overload.

        `by` names the column with a row's class, and `classes` what each class is worth; values
        that are not listed form the class 'other'. With `key` rows are also counted per key group,
        of which there are `shards`. With `weight` rows get the column `_weight`, 1 / keep: how many
        offered rows each represents. `unique` names columns whose values no two rows share, such as
        an id, or a partition and an offset: Spark then samples rows by itself, with no Python stage
        before a shuffle. See docs/shedding.md.
        """
        node = self.graph.nodes[self.node]
        if not isinstance(node, Source):
            raise AskedWrongly(
                f"shed: '{self.node}' is not a source; rows are shed before the first operator, so "
                "call .shed(...) right after tg.pipeline(...) or .source(...)"
            )
        if node.shedding is not None:
            raise AskedWrongly(
                f"shed: .shed(...) was already called on the source '{self.node}'; call it once"
            )
        keys = (key,) if isinstance(key, str) else tuple(key)
        if not 1 <= shards <= MAX_SHARDS:
            raise AskedWrongly(f"shed: {shards} shards; give 1 to {MAX_SHARDS}")
        if any(self.node in other.inputs for other in self.graph.nodes.values()):
            raise AskedWrongly(
                f"shed: an operator already reads the source '{self.node}'; call .shed(...) first"
            )
        asked = shedding_of(
            self.schema,
            f"shed '{self.node}'",
            by=by,
            classes=classes,
            key=keys,
            shards=shards,
            weight=weight,
            unique=(unique,) if isinstance(unique, str) else tuple(unique),
        )
        schema = self.schema.append(pa.field(WEIGHT, pa.float64())) if weight else self.schema
        self.graph.nodes[self.node] = replace(node, shedding=asked, schema=schema)
        return self

    def map(
        self,
        function: Callable[[pa.Table], pa.Table | Derived],
        schema: Declared | None = None,
        *,
        name: str | None = None,
        tasks: Tasks = None,
        on_error: Given = "fail",
    ) -> "Stream":
        """Add a stateless operator: a function from an Arrow table to an Arrow table.

        `schema` declares the columns it returns; by default they are those of its input. It is
        called with blocks of rows, as they come. With `tasks` the rows are distributed over that
        many tasks; without, the function runs where the rows already are. A function that drops or
        repeats rows may return `tg.Derived` to say which row became which.

        Rows on which the function raises an error fail the pipeline. With `on_error="skip"` they
        are found by halving the block, left out and counted, and `failed()` has them as a stream;
        `on_error=sink` gives them to a function of (DataFrame, batch id).
        """
        name = self.graph.free_name(name or str(getattr(function, "__name__", "map")))
        columns = (
            self.schema
            if schema is None
            else arrow_schema(spark_schema(schema, f"operator '{name}'"))
        )
        bounds = None if tasks is None else task_bounds(tasks, name, None)
        made = self._add(
            Map(
                name=name,
                inputs=(self.node,),
                schema=columns,
                function=function,
                tasks=bounds,
                on_error=on_error_of(on_error, f"operator '{name}'"),
            )
        )
        return made._failed_to(on_error)

    def keyed(
        self,
        name: str,
        function: KeyedFunction | Callable[[pa.Table, pa.Table], Update],
        key: str | list[str] | tuple[str, ...],
        *,
        state: Declared | None = None,
        output: Declared | None = None,
        within: str | None = None,
        defaults: Mapping[str, Any] | None = None,
        shards: int = 256,
        tasks: Tasks = (1, None),
        order_by: str | None = None,
        ttl: str | None = None,
        timer: str | None = None,
        clock: Clock = "event",
        event_time: str | None = None,
        delay: str = "0 seconds",
        on_error: Given = "fail",
        others: "Stream | Sequence[Stream]" = (),
    ) -> "Stream":
        """Add a stateful operator: a built-in like `tg.count()`, or a function of (rows, state).

        A function of your own is called once per task with the rows and the state rows of their
        keys, and returns an `Update`. `state` declares the state's columns without the key, and
        `output` the columns it emits. For state columns that were added later, `defaults` has their
        value in rows from before. `order_by` sorts the rows of a task, and so of every key, by that
        column. `ttl` removes the state of a key that was not written for that long.

        `timer` names a timestamp column of the state. Once the time in it has come, the function
        gets the state row again, whether or not its key has rows. With `clock="event"` the
        watermark of the column `event_time` tells the time, `delay` behind the newest event; with
        `clock="processing"` it is when the micro-batch was planned. A function that takes a third
        argument gets the `KeyedBatch`, which says which state rows these are.

        `others` are further streams with the same key columns: a function of your own is then one
        of (rows, rows of the other stream, ..., state).

        With `on_error="skip"` keys on which the function raises an error are found by halving, and
        all their rows of the micro-batch are left out and counted; `failed()` has them as a stream,
        and `on_error=sink` gives them to a function of (DataFrame, batch id).
        """
        what = f"operator '{name}'"
        keys = (key,) if isinstance(key, str) else tuple(key)
        others = (others,) if isinstance(others, Stream) else tuple(others)
        if others:
            packing = packing_of(
                [self.schema, *(other.schema for other in others)],
                [keys] * (1 + len(others)),
                None,
                what,
            )
            if timer is not None or event_time is not None:
                raise AskedWrongly(
                    f"{what}: timer and event_time go with one input; leave them out, or merge the "
                    "streams before it"
                )
            own = several_inputs(function, packing, what, order_by)
            return self._packed(name, packing, others).keyed(
                name,
                own,
                keys,
                state=state,
                output=output,
                within=within,
                defaults=defaults,
                shards=shards,
                tasks=tasks,
                ttl=ttl,
                on_error=on_error,
            )
        if not keys:
            raise AskedWrongly(f"{what}: give at least one key column")
        require_columns(keys, self.schema, what)
        for column in keys:
            kind = self.schema.field(column).type
            if pa.types.is_floating(kind) or pa.types.is_nested(kind):
                raise AskedWrongly(
                    f"{what}: the key column '{column}' is {kind}; use whole numbers, strings, "
                    "booleans, dates or timestamps"
                )
            require_binary(self.schema.field(column), f"{what}: the key column")
        if not 1 <= shards <= MAX_SHARDS:
            raise AskedWrongly(f"{what}: {shards} shards; give 1 to {MAX_SHARDS}")
        if order_by is not None:
            require_columns((order_by,), self.schema, what)
        times = times_of(self.schema, what, timer, clock, event_time, delay)
        ready = self._function(function, what, state, output, within, times)
        bound = ready.bind(self.schema, keys)
        if not bound.identity:
            bound = replace(bound, identity=identity_of(ready))
        if defaults:
            bound = replace(bound, state=with_defaults(bound.state, defaults, what))
        if bound.within is not None and bound.within not in bound.state.names:
            require_columns((bound.within,), bound.state, f"{what}: within")
        made = self._add(
            Keyed(
                name=name,
                inputs=(self.node,),
                schema=bound.output,
                key=keys,
                rows=self.schema,
                bound=bound,
                shards=shards,
                tasks=task_bounds(tasks, name, shards),
                order_by=order_by,
                ttl_us=None if ttl is None else round(parse_duration(ttl) * 1e6),
                on_error=on_error_of(on_error, what),
            )
        )
        return made._failed_to(on_error)

    def distinct(
        self,
        key: str | list[str] | tuple[str, ...],
        *,
        within: str,
        event_time: str | None = None,
        delay: str = "0 seconds",
        name: str = "distinct",
        shards: int = 256,
        tasks: Tasks = (1, None),
    ) -> "Stream":
        """Pass on the first row of each key within a span of time, and drop those that repeat it.

        `event_time` names the timestamp column that tells a row's time; rows more than `delay`
        behind the newest event are late and dropped. Without it, the time of a row is when its
        micro-batch was planned. What was kept is forgotten after `within`, so the state is bounded.
        """
        if event_time is None and delay != "0 seconds":
            raise AskedWrongly(
                f"operator '{name}': delay='{delay}' needs event_time=; give it, or leave it out"
            )
        function = Deduplication(within, event_time, delay)
        return self.keyed(name, function, key, shards=shards, tasks=tasks)

    def _function(
        self,
        function: Any,
        what: str,
        state: Declared | None,
        output: Declared | None,
        within: str | None,
        times: Times,
    ) -> KeyedFunction:
        if hasattr(function, "bind"):
            refuse_times(times, what, function)
            if state is not None or output is not None or within is not None:
                raise AskedWrongly(
                    f"{what}: {type(function).__name__} declares its own state and output; leave "
                    "state, output and within out"
                )
            ready: KeyedFunction = function
            return ready
        if not callable(function):
            raise AskedWrongly(
                f"{what}: give a function of (rows, state), or a built-in one such as tg.count()"
            )
        if state is None or output is None:
            raise AskedWrongly(
                f"{what}: declare state='...' and output='...' for a function of your own"
            )
        kept = arrow_schema(spark_schema(state, f"{what}: state"))
        require_timer(times, kept, what)
        emitted = arrow_schema(spark_schema(output, f"{what}: output"))
        return PlainFunction(function, kept, emitted, within, times)

    def late(self, name: str | None = None) -> "Stream":
        """The late rows of this keyed operator, as a stream with the columns that entered it.

        They are dropped and counted unless they are taken here. They may have a sink of their own,
        or go on like any other rows.
        """
        node = self.graph.nodes[self.node]
        if not isinstance(node, Keyed) or node.bound.event_time is None:
            raise AskedWrongly(
                f"late: '{self.node}' is not an operator with event time, which alone has late "
                "rows; call .late() right after a window, sessions, distinct with event_time, or "
                "a function of your own with event_time"
            )
        return self._aside("late", node.rows, name)

    def failed(self, name: str | None = None) -> "Stream":
        """The rows that this operator's function could not process, as a stream.

        They have the columns that entered the operator, and `_error`: what the function raised.
        """
        node = self.graph.nodes[self.node]
        if not isinstance(node, Map | Keyed) or node.on_error == "fail":
            raise AskedWrongly(
                f"failed: '{self.node}' puts no rows aside; give its .map(...) or .keyed(...) "
                "on_error='skip', and call .failed() right after it"
            )
        rows = node.rows if isinstance(node, Keyed) else self.graph.nodes[node.inputs[0]].schema
        return self._aside("failed", failed_rows(rows, f"operator '{self.node}'"), name)

    def _failed_to(self, on_error: Given) -> "Stream":
        """This stream; the rows that its function cannot process go to the sink, if it is one."""
        if callable(on_error):
            self.failed().to(on_error, name=self.graph.free_name(f"{self.node}_failed_to"))
        return self

    def _aside(self, kind: AsideKind, schema: pa.Schema, name: str | None) -> "Stream":
        """The rows that this operator puts aside for a reason; the same stream if asked again."""
        for other in self.graph.nodes.values():
            if isinstance(other, Aside) and other.kind == kind and self.node in other.inputs:
                return Stream(self.graph, other.name)
        free = self.graph.free_name(name or f"{self.node}_{kind}")
        return self._add(Aside(name=free, inputs=(self.node,), schema=schema, kind=kind))

    def merge(self, *others: "Stream", name: str | None = None) -> "Stream":
        """Merge this stream and others with the same columns into one."""
        if not others:
            raise AskedWrongly("merge: give at least one other stream")
        self._require_same_pipeline(others, "merge")
        for other in others:
            if other.schema.names != self.schema.names or other.schema.types != self.schema.types:
                raise AskedWrongly(
                    f"merge: '{other.node}' has the columns ({_ddl(other.schema)}), expected those "
                    f"of '{self.node}' ({_ddl(self.schema)})"
                )
        names = (self.node, *(other.node for other in others))
        free = self.graph.free_name(name or "merge")
        return self._add(Merge(name=free, inputs=names, schema=self.schema))

    def join(
        self,
        other: "Stream",
        *,
        key: str | list[str] | tuple[str, ...],
        other_key: str | list[str] | tuple[str, ...] | None = None,
        how: str = "inner",
        within: str | tuple[str, str] | None = None,
        event_time: str = "timestamp",
        other_event_time: str | None = None,
        delay: str = "0 seconds",
        suffix: str = "_right",
        name: str | None = None,
        shards: int = 256,
        tasks: Tasks = (1, None),
        ttl: str | None = None,
    ) -> "Stream":
        """Join this stream and another one: rows with the same key and event times close enough.

        `within="10 minutes"` is how far apart the two rows may be; two durations are how much
        earlier and how much later the other's row may be. Without it rows match at any time, and
        wait for ever or for `ttl`. `how` is inner, left, right or full: a row of an outer side that
        has no match is emitted when the watermark says that none can come. Columns of the other
        stream that this one has, too, get the `suffix`. See docs/joins.md.
        """
        self._require_same_pipeline((other,), "join")
        name = self.graph.free_name(name or "join")
        keys = (key,) if isinstance(key, str) else tuple(key)
        others = keys if other_key is None else other_key
        function = join_of(
            (self.schema, other.schema),
            (keys, (others,) if isinstance(others, str) else tuple(others)),
            how=how,
            within=within,
            event_times=(event_time, other_event_time or event_time),
            delay=delay,
            suffix=suffix,
            ttl=ttl,
            what=f"operator '{name}'",
        )
        return self._packed(name, function.packing, (other,)).keyed(
            name, function, keys, shards=shards, tasks=tasks, ttl=ttl
        )

    def enrich(
        self,
        table: "Stream | pa.Table | DataFrame",
        *,
        key: str | list[str] | tuple[str, ...],
        other_key: str | list[str] | tuple[str, ...] | None = None,
        how: str = "left",
        suffix: str = "_right",
        name: str | None = None,
        shards: int = 256,
        tasks: Tasks = (1, None),
    ) -> "Stream":
        """Add the columns of a table to each row, by key; `how="inner"` drops rows without one.

        A table that stays as it is may be an Arrow table or a DataFrame that is no stream: it is
        looked up where the rows are, with no shuffle. A table that changes is a stream of its rows:
        the newest row of each key is kept as state, and rows get what it is in their micro-batch.
        """
        name = self.graph.free_name(name or "enrich")
        what = f"operator '{name}'"
        keys = (key,) if isinstance(key, str) else tuple(key)
        asked = keys if other_key is None else other_key
        others = (asked,) if isinstance(asked, str) else tuple(asked)
        if not isinstance(table, Stream):
            lookup = lookup_of(self.schema, table, keys, others, how, suffix, what)
            return self._add(
                Map(name=name, inputs=(self.node,), schema=lookup.output, function=lookup)
            )
        self._require_same_pipeline((table,), "enrich")
        function = enrichment_of((self.schema, table.schema), (keys, others), how, suffix, what)
        return self._packed(name, function.packing, (table,)).keyed(
            name, function, keys, shards=shards, tasks=tasks
        )

    def cut(
        self,
        name: str,
        channel: str = "directory",
        *,
        servers: str | None = None,
        topic: str | None = None,
        partitions: int | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> "Stream":
        """Cut the pipeline here: what follows is a segment of its own behind a durable channel.

        The rows of the channel are files of the checkpoint. With `channel="kafka"` and `servers`
        they are records of a topic, which is created unless it exists: `topic` names it, and no
        other pipeline may use it; `partitions` (8) are so many tasks that write side by side;
        `settings` are further ones of Kafka's client, as librdkafka names them.
        """
        asked = channel_topic_of(name, channel, servers, topic, partitions, settings)
        return self._add(Channel(name=name, inputs=(self.node,), schema=self.schema, topic=asked))

    def loop(self, name: str, schema: Declared | None = None) -> "Stream":
        """Declare a loop: `merge` it where its rows enter, and `feed` it where they leave."""
        columns = (
            self.schema if schema is None else arrow_schema(spark_schema(schema, f"loop '{name}'"))
        )
        return self._add(Channel(name=name, inputs=(), schema=columns, loop=True))

    def feed(self, loop: "Stream") -> "Stream":
        """Send these rows back into a loop."""
        node = self.graph.nodes.get(loop.node)
        if loop.graph is not self.graph or not isinstance(node, Channel) or not node.loop:
            raise AskedWrongly(
                f"feed: '{loop.node}' is not a loop of this pipeline; make it with .loop(...)"
            )
        if node.schema.names != self.schema.names or node.schema.types != self.schema.types:
            raise AskedWrongly(
                f"feed: '{self.node}' has the columns ({_ddl(self.schema)}), the loop "
                f"'{node.name}' expects ({_ddl(node.schema)})"
            )
        self.graph.feeds.setdefault(node.name, []).append(self.node)
        return self

    def to(
        self,
        sink: "Callable[[DataFrame, int], object] | str",
        *,
        name: str | None = None,
        retries: int = 0,
        **options: str,
    ) -> "Stream":
        """End this branch in a function of (DataFrame, batch id), or in a Spark batch format.

        A function may read the DataFrame any number of times. When a batch is replayed, it is
        called again with the same batch id and the same rows. A sink that fails ends the run.
        With `retries=3` the batch tries it three times more first, after 1, 2 and 4 seconds; the
        wait doubles up to half a minute.
        """
        if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
            raise AskedWrongly(f"to: retries={retries!r}; give a whole number of 0 or more")
        free = self.graph.free_name(name or (sink if isinstance(sink, str) else "sink"))
        if isinstance(sink, str):
            ready = Sink(
                name=free,
                inputs=(self.node,),
                schema=self.schema,
                format=sink,
                options=tuple(sorted((key, str(value)) for key, value in options.items())),
                retries=retries,
            )
        elif callable(sink):
            if options:
                raise AskedWrongly(
                    f"to: options {sorted(options)} go with a format, not a function"
                )
            _check_sink(sink)
            ready = Sink(
                name=free,
                inputs=(self.node,),
                schema=self.schema,
                write=sink,
                retries=retries,
            )
        else:
            raise AskedWrongly(
                "to: give a function of (DataFrame, batch id), or the name of a format"
            )
        self.graph.add(ready)
        return self

    def start(self, checkpoint: str, **options: "Unpack[StartOptions]") -> "Run":
        """Start the whole pipeline, checked before anything runs.

        `checkpoint` is a directory or a URL; a second start with it goes on where the first ended.
        With `target` ("2 seconds") a control loop keeps that latency. docs/options.md has the
        options, docs/decisions.md and docs/overload.md explain them.
        """
        if _starter is None:
            raise TidegateError("nothing is loaded that can run a pipeline; import tidegate")
        return _starter(self.graph, checkpoint, **options)

    def _packed(self, name: str, packing: Packing, others: "Sequence[Stream]") -> "Stream":
        """This stream and others in one table, for the operator of this name."""
        self._require_same_pipeline(others, f"operator '{name}'")
        return self._add(
            Packed(
                name=self.graph.free_name(f"{name}_inputs"),
                inputs=(self.node, *(other.node for other in others)),
                schema=packing.schema,
                packing=packing,
            )
        )

    def _require_same_pipeline(self, others: "Sequence[Stream]", what: str) -> None:
        for other in others:
            if not isinstance(other, Stream):
                raise AskedWrongly(
                    f"{what}: expected another stream of this pipeline, not a "
                    f"{type(other).__name__}"
                )
            if other.graph is not self.graph:
                raise AskedWrongly(
                    f"{what}: the stream '{other.node}' belongs to another pipeline; add its "
                    "source with .source(...)"
                )

    def _add(self, node: Node) -> "Stream":
        self.graph.add(node)
        return Stream(self.graph, node.name)


def _require_stream(frame: Any, what: str) -> None:
    """Refuse anything but a streaming DataFrame of a session in this process."""
    if type(frame).__module__.startswith("pyspark.sql.connect"):
        raise AskedWrongly(
            f"{what}: this DataFrame is from Spark Connect, whose driver is another process; "
            "Tidegate runs inside the driver, so make it with a session such as tidegate.session()"
        )
    streaming = getattr(frame, "isStreaming", None)
    if streaming is None:
        raise AskedWrongly(
            f"{what}: expected a streaming DataFrame, not a {type(frame).__name__}; make it with "
            "spark.readStream or tidegate.arrivals"
        )
    if not streaming:
        raise AskedWrongly(
            f"{what}: the DataFrame is not a stream; make it with spark.readStream or "
            "tidegate.arrivals"
        )


def _check_sink(sink: Callable[..., object]) -> None:
    """Refuse a function that cannot be called with a DataFrame and a batch id."""
    try:
        inspect.signature(sink).bind(None, 0)
    except TypeError as error:
        raise AskedWrongly(
            f"to: the function is called with (DataFrame, batch id), but this one does not take "
            f"them: {error}"
        ) from None
    except ValueError:
        return  # a function of C says nothing about its arguments


def _ddl(schema: pa.Schema) -> str:
    return ", ".join(f"{column.name} {column.type}" for column in schema)
