"""The checkpoint directory: what is stored where, and whether it belongs to this pipeline."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tidegate.errors import AskedWrongly, TidegateError
from tidegate.pipelines.graph import Channel, Graph, Keyed
from tidegate.spark.state.files import Durable

FORMAT = 1
_DESCRIPTION = "pipeline.json"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint by its URL."""

    root: Durable

    @property
    def state(self) -> Durable:
        """One directory per keyed operator."""
        return self.root.below("state")

    def segment(self, name: str) -> Durable:
        """What belongs to one segment."""
        return self.root.below(f"segments/{name}")

    def channel(self, name: str) -> Durable:
        """What belongs to one channel."""
        return self.root.below(f"channels/{name}")

    def description(self) -> dict[str, Any] | None:
        """What the checkpoint says about its pipeline; None when it is new."""
        if not self.root.exists(_DESCRIPTION):
            return None
        return self.root.read_json(_DESCRIPTION)

    def check(self, graph: Graph) -> None:
        """Refuse a checkpoint that does not belong to this pipeline; nothing is written."""
        found = self.description()
        wrong = None if found is None else difference(found, describe(graph))
        if wrong is not None:
            raise AskedWrongly(
                f"the checkpoint {self.root.url} does not fit this pipeline: {wrong}; "
                "nothing was changed"
            )

    def open(self, graph: Graph) -> None:
        """Create it for this pipeline, or check that it belongs to it."""
        self.check(graph)
        wanted = describe(graph)
        found = self.description()
        self.root.make()
        if found != wanted:
            self.root.write_json(_DESCRIPTION, wanted)


def describe(graph: Graph) -> dict[str, Any]:
    """The part of a pipeline that its checkpoint depends on."""
    return {
        "format": FORMAT,
        "pipeline": graph.name,
        "operators": {
            node.name: {
                "key": [[column.name, str(column.type)] for column in node.key_schema],
                "shards": node.shards,
                "state": [[column.name, str(column.type)] for column in node.bound.state],
                "within": node.bound.within,
                "schema": _packed(pa.schema([*node.key_schema, *node.bound.state])),
            }
            for node in graph.nodes.values()
            if isinstance(node, Keyed)
        },
        "segments": {
            segment.name: [node.name for node in segment.nodes if isinstance(node, Keyed)]
            for segment in graph.segments()
        },
        "channels": sorted(n.name for n in graph.nodes.values() if isinstance(n, Channel)),
    }


def difference(found: dict[str, Any], wanted: dict[str, Any]) -> str | None:
    """The first reason why a checkpoint does not fit a pipeline, in words; None when it fits."""
    if found.get("format") != FORMAT:
        return f"its format is {found.get('format')}, this version reads {FORMAT}"
    if found["pipeline"] != wanted["pipeline"]:
        return f"it belongs to pipeline '{found['pipeline']}', not '{wanted['pipeline']}'"
    for name, old in found["operators"].items():
        new = wanted["operators"].get(name)
        if new is None:
            return f"it holds state of operator '{name}', which the pipeline no longer has"
        for what, said in (("key", "key"), ("shards", "shard count"), ("state", "state")):
            if old[what] != new[what]:
                return (
                    f"operator '{name}' had the {said} {_show(old[what])}, now {_show(new[what])}"
                )
        if old["within"] != new["within"]:
            return f"operator '{name}' had within={old['within']}, now within={new['within']}"
    for segment, operators in found["segments"].items():
        if segment not in wanted["segments"]:
            return f"it has a segment '{segment}', which the pipeline no longer has"
        gone = [name for name in operators if name not in wanted["segments"][segment]]
        if gone:
            return f"operator '{gone[0]}' was in segment '{segment}' and no longer is"
    return None


def _show(value: Any) -> str:
    if isinstance(value, list):
        return "(" + ", ".join(f"{name} {kind}" for name, kind in value) + ")"
    return str(value)


def _packed(schema: pa.Schema) -> str:
    """Arrow's own encoding of a schema, for tools that read the state without the pipeline."""
    return bytes(schema.serialize()).hex()


def require_description(checkpoint: Checkpoint) -> dict[str, Any]:
    """The description of a checkpoint that must exist, for tools that inspect it."""
    found = checkpoint.description()
    if found is None:
        raise AskedWrongly(
            f"{checkpoint.root.url} is not a Tidegate checkpoint: it has no {_DESCRIPTION}; give "
            "the directory that was passed as checkpoint="
        )
    if found.get("format") != FORMAT:
        raise TidegateError(
            f"the checkpoint {checkpoint.root.url} has format {found.get('format')}, this version "
            f"reads {FORMAT}"
        )
    return found
