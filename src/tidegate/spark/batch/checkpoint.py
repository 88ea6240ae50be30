"""The checkpoint directory: what is stored where, and whether it belongs to this pipeline."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from tidegate.errors import AskedWrongly, TidegateError
from tidegate.pipelines.graph import Channel, Graph, Keyed
from tidegate.spark.batch import layouts
from tidegate.spark.batch.descriptions import DESCRIPTION, Description, Descriptions
from tidegate.spark.batch.kept_names import KEPT_AS, KeptNames
from tidegate.spark.batch.layouts import earlier_layouts, gained, packed_schema
from tidegate.spark.batch.migration import NOTHING_DECLARED, Migration, migrated
from tidegate.spark.state.files import Durable

FORMAT = 1
"""The format of a checkpoint as most are; `layouts.FORMAT` says what makes the next one."""
_READ = (FORMAT, layouts.FORMAT)
INDEX = "savepoint.json"
"""What makes a directory a savepoint (`savepoint.index`)."""
RESTORING = "restoring.json"
"""Tells that a savepoint is being copied here. The checkpoint begins with its description."""
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

    @property
    def descriptions(self) -> Descriptions:
        """What it said about its pipeline, and what it says now."""
        return Descriptions(self.root)

    def description(self) -> dict[str, Any] | None:
        """What the checkpoint says about its pipeline; None when it is new."""
        newest = self.descriptions.newest()
        return None if newest is None else newest.document

    def open(
        self,
        graph: Graph,
        migration: Migration = NOTHING_DECLARED,
        check: Callable[[], None] = lambda: None,
    ) -> "Checkpoint":
        """Create it for this pipeline, or check that it belongs to it.

        Renaming and dropping operators takes one file. `check` raises if another driver has the
        checkpoint. A driver that had it before may still describe it as long as this one has not:
        then that description is the one that the pipeline has to fit.
        """
        while True:
            newest = self.descriptions.newest()
            found = None if newest is None else newest.document
            wanted = self.fitted(graph, migration, found)
            check()
            self.root.make()
            if found == wanted:
                break
            if self.descriptions.follow(newest, wanted):
                _tell_changes(graph.name, found, wanted)
                break
        return replace(
            self,
            names=KeptNames.of(wanted),
            earlier={name: earlier_layouts(one) for name, one in wanted["operators"].items()},
        )

    def redescribe(self, wanted: dict[str, Any], found: Description | None) -> None:
        """Let a description follow the one that was found, unless another driver was quicker."""
        if not self.descriptions.follow(found, wanted) and self.description() != wanted:
            raise TidegateError(
                f"another driver has changed the description of {self.root.url} meanwhile; this "
                "one has not written it; make sure that only one driver starts on a checkpoint, "
                "and start again"
            )

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


def _tell_changes(pipeline: str, found: dict[str, Any] | None, wanted: dict[str, Any]) -> None:
    """Say in the log what was dropped from the state, and which of its columns have changed."""
    for name in _retired(wanted) - _retired(found):
        _LOG.warning(
            "pipeline '%s': the state of '%s' in the checkpoint is forgotten, as declared by "
            "dropped=",
            pipeline,
            name,
        )
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
    return require_newest(checkpoint).document


def require_newest(checkpoint: Checkpoint) -> Description:
    """The same with its number, for tools that change it."""
    found = checkpoint.descriptions.newest()
    if found is None:
        raise AskedWrongly(
            f"{checkpoint.root.url} is not a Tidegate checkpoint: it has no {DESCRIPTION}; give "
            "the directory that was passed as checkpoint="
        )
    require_format(found.document, checkpoint.root.url)
    return found
