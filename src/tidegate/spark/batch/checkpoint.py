"""The checkpoint directory: what is stored where, and whether it belongs to this pipeline."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from tidegate.errors import AskedWrongly, TidegateError
from tidegate.pipelines.graph import Channel, Graph, Keyed
from tidegate.spark.batch import layouts
from tidegate.spark.batch.kept_names import KEPT_AS, KeptNames
from tidegate.spark.batch.layouts import earlier_layouts, gained, packed_schema
from tidegate.spark.batch.migration import NOTHING_DECLARED, Migration, migrated
from tidegate.spark.state.files import Durable, Missing

FORMAT = 1
"""The format of a checkpoint as most are; `layouts.FORMAT` says what makes the next one."""
_READ = (FORMAT, layouts.FORMAT)
DESCRIPTION = "pipeline.json"
INDEX = "savepoint.json"
"""What makes a directory a savepoint (`savepoint.index`)."""
RESTORING = "restoring.json"
"""Tells that a savepoint is being copied here. The checkpoint begins with its description."""
_NEXT = "pipeline.next.json"
_LOG = logging.getLogger("tidegate")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint by its URL."""

    root: Durable
    names: KeptNames = field(default_factory=KeptNames)
    """The names under which operators keep their state."""
    earlier: Mapping[str, tuple[pa.Schema, ...]] = field(default_factory=dict)
    """For each operator, the layouts that older files of its state have (`layouts`)."""

    def state(self, operator: str) -> Durable:
        """The directory with the state files of a keyed operator."""
        return self.states.below(self.names.kept(operator))

    @property
    def states(self) -> Durable:
        """One directory per keyed operator, by the name of its state."""
        return self.root.below("state")

    def segment(self, name: str) -> Durable:
        """What belongs to one segment."""
        return self.root.below(f"segments/{name}")

    def channel(self, name: str) -> Durable:
        """What belongs to one channel."""
        return self.root.below(f"channels/{name}")

    def description(self) -> dict[str, Any] | None:
        """What the checkpoint says about its pipeline; None when it is new.

        A filesystem that cannot replace a file in one step may have lost the description in a
        crash. What was to take its place is then read instead.
        """
        for name in (DESCRIPTION, _NEXT):
            try:
                return self.root.read_json(name)
            except Missing:
                continue
        return None

    def open(self, graph: Graph, migration: Migration = NOTHING_DECLARED) -> "Checkpoint":
        """Create it for this pipeline, or check that it belongs to it.

        Renaming and dropping operators takes one file, which is written atomically.
        """
        found = self.description()
        wanted = self.fitted(graph, migration)
        self.root.make()
        if self.redescribe(wanted, found):
            for name in _retired(wanted) - _retired(found):
                _LOG.warning(
                    "pipeline '%s': the state of '%s' in the checkpoint is forgotten, as declared "
                    "by dropped=",
                    graph.name,
                    name,
                )
            _tell_columns(graph.name, found, wanted)
        return replace(
            self,
            names=KeptNames.of(wanted),
            earlier={name: earlier_layouts(one) for name, one in wanted["operators"].items()},
        )

    def redescribe(self, wanted: dict[str, Any], found: dict[str, Any] | None) -> bool:
        """Put a description in the place of the one that was found; False if it is there already.

        A crash leaves the one or the other.
        """
        there = self.root.exists(DESCRIPTION)
        if found == wanted and there:
            return False
        self.root.write_json(_NEXT, wanted)
        self.root.replace_json(DESCRIPTION, wanted, found if there else None)
        self.root.remove(_NEXT)
        return True

    def refuse_leftovers(self) -> None:
        """Refuse a checkpoint that has state or batches, but no description to judge them by."""
        if self.root.exists(INDEX):
            raise AskedWrongly(
                f"{self.root.url} is a savepoint, which stays as it is; give it as savepoint=, and "
                "a new directory as checkpoint="
            )
        if self.root.exists(RESTORING):
            raise AskedWrongly(
                f"the checkpoint {self.root.url} is an incomplete copy of a savepoint; start again "
                "with the same savepoint=, or give another checkpoint"
            )
        for kind in ("segments", "state", "channels"):
            if self.root.below(kind).directories():
                raise AskedWrongly(
                    f"the checkpoint {self.root.url} has a directory '{kind}' with the work of "
                    f"earlier runs, but its {DESCRIPTION} is missing; restore that file from a "
                    "copy, or give a new checkpoint; nothing was changed"
                )

    def fitted(
        self, graph: Graph, migration: Migration, origin: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The description that it gets with this pipeline; raises if it does not fit.

        `origin` is the description in the savepoint that it is to begin with, if there is one.
        """
        wanted = describe(graph)
        found = self.description() if origin is None else dict(origin)
        if found is None:
            self.refuse_leftovers()
            return wanted
        try:
            require_format(found, self.root.url)
            wanted = migrated(found, wanted, migration)
            _check_other_names(graph, KeptNames.of(wanted))
            return wanted
        except AskedWrongly as error:
            raise AskedWrongly(
                f"the checkpoint {self.root.url} does not fit this pipeline: {error}; nothing was "
                "changed"
            ) from None


def _check_other_names(graph: Graph, names: KeptNames) -> None:
    """Plans name maps and keyed operators alike, so a map cannot have the name of kept state."""
    for operator, kept in names.by_operator.items():
        node = graph.nodes.get(kept)
        if node is not None and not isinstance(node, Keyed):
            raise AskedWrongly(
                f"'{kept}' is the name under which the state of operator '{operator}' is kept; "
                f"give the step '{kept}' another name"
            )


def _tell_columns(pipeline: str, found: dict[str, Any] | None, wanted: dict[str, Any]) -> None:
    """Say in the log which columns of state have changed."""
    old = {} if found is None else found["operators"]
    for name, one in wanted["operators"].items():
        before = next(
            (o for n, o in old.items() if o.get(KEPT_AS, n) == one.get(KEPT_AS, name)), None
        )
        words = [] if before is None else gained(before, one)
        if words:
            _LOG.warning(
                "pipeline '%s': in the state of operator '%s', %s; older files are read so, and "
                "nothing is rewritten at once",
                pipeline,
                name,
                ", ".join(words),
            )


def _retired(description: dict[str, Any] | None) -> set[str]:
    """What was dropped from a checkpoint."""
    said = description or {}
    return {*said.get("retired", []), *said.get("retired_segments", [])}


def describe(graph: Graph) -> dict[str, Any]:
    """The part of a pipeline that its checkpoint depends on."""
    segments = graph.segments()
    return {
        "format": FORMAT,
        "pipeline": graph.name,
        "operators": {
            node.name: _operator(node) for node in graph.nodes.values() if isinstance(node, Keyed)
        },
        "segments": {
            segment.name: [node.name for node in segment.nodes if isinstance(node, Keyed)]
            for segment in segments
        },
        "reads": {segment.name: [node.name for node in segment.reads] for segment in segments},
        "channels": sorted(n.name for n in graph.nodes.values() if isinstance(n, Channel)),
    }


def _operator(node: Keyed) -> dict[str, Any]:
    return {
        "key": _columns(node.key_schema),
        "shards": node.shards,
        "state": _columns(node.bound.state),
        "within": node.bound.within,
        "due": node.bound.due,
        "schema": packed_schema(pa.schema([*node.key_schema, *node.bound.state])),
        "function": dict(node.bound.identity),
        "order_by": node.order_by,
        "ttl_us": node.ttl_us,
        "rows": _columns(node.rows),
    }


def _columns(schema: pa.Schema) -> list[list[str]]:
    return [[column.name, str(column.type)] for column in schema]


def require_format(description: dict[str, Any], url: str) -> None:
    """Refuse a checkpoint of another format, which another version of Tidegate has written."""
    found = description.get("format")
    if found in _READ:
        return
    if isinstance(found, int) and found > max(_READ):
        raise TidegateError(
            f"the checkpoint {url} was written by a newer release of Tidegate: it has format "
            f"{found}, and this release reads up to {max(_READ)}; nothing was changed; use that "
            "release or a later one, or start from a savepoint that was made before the upgrade"
        )
    raise TidegateError(
        f"the checkpoint {url} has format {found}, and this version reads "
        f"{' and '.join(map(str, _READ))}; use the version of Tidegate that wrote it, or give "
        "another checkpoint"
    )


def require_description(checkpoint: Checkpoint) -> dict[str, Any]:
    """The description of a checkpoint that must exist, for tools that inspect it."""
    found = checkpoint.description()
    if found is None:
        raise AskedWrongly(
            f"{checkpoint.root.url} is not a Tidegate checkpoint: it has no {DESCRIPTION}; give "
            "the directory that was passed as checkpoint="
        )
    require_format(found, checkpoint.root.url)
    return found
