"""Gives the operators of a stopped pipeline another number of shards.

New state is written beside the old one, under another kept name. The newest manifest is then
written again with that name added to it, which nobody reads yet. At last one file, the next
description, says that the operator keeps its state there. A crash before that leaves everything as
it was, and after it the old state is removed with the manifests that name it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tidegate.errors import AskedWrongly, nearest
from tidegate.pipelines.graph import MAX_SHARDS
from tidegate.spark.batch.checkpoint import (
    FORMAT,
    Checkpoint,
    require_description,
    require_newest,
)
from tidegate.spark.batch.committed import newest_batch
from tidegate.spark.batch.kept_names import KEPT_AS, fresh_name
from tidegate.spark.batch.layouts import EARLIER, earlier_layouts, schema_of
from tidegate.spark.owner.epochs import Epochs
from tidegate.spark.owner.owner import take
from tidegate.spark.state.files import Durable
from tidegate.spark.state.layout import with_system
from tidegate.spark.state.location import location_of
from tidegate.spark.state.manifest import Manifests
from tidegate.spark.state.node_cache import NodeCache
from tidegate.spark.state.reshard import Hashes, Told, resharded, rows_of
from tidegate.spark.state.version import Version


@dataclass(frozen=True, slots=True)
class Resharded:
    """What was done to one operator."""

    operator: str
    before: int
    after: int
    rows: int


def reshard(
    checkpoint: str,
    shards: Mapping[str, int] | int,
    hashes: Hashes,
    *,
    expected: Callable[[int], None] = lambda rows: None,
    told: Told = lambda rows: None,
) -> list[Resharded]:
    """Give operators of a checkpoint that nobody uses so many shards, all of them or those named.

    `expected` is told how many rows there are before the first is written, and `told` each part.
    """
    root = Durable(location_of(checkpoint))
    description = require_description(Checkpoint(root))
    wanted = _wanted(description, shards)
    if not wanted:
        return []
    owner = take(Epochs(root.below("owner")), str(description["pipeline"]))
    try:
        return reshard_owned(root, wanted, hashes, owner.lease.check, expected=expected, told=told)
    finally:
        owner.release()


def reshard_owned(
    root: Durable,
    wanted: Mapping[str, int],
    hashes: Hashes,
    check: Callable[[], None],
    *,
    expected: Callable[[int], None] = lambda rows: None,
    told: Told = lambda rows: None,
) -> list[Resharded]:
    """The same on a checkpoint that this process owns; `check` raises if it no longer does."""
    place = Checkpoint(root)
    found = require_newest(place)
    description = found.document
    newest = {
        segment: newest_batch(place, segment)
        for segment, names in description["segments"].items()
        if wanted.keys() & set(names)
    }
    versions = _versions(place, description, newest, wanted)
    rows = {name: rows_of(version) for name, version in versions.items()}
    expected(sum(rows.values()))
    operators = {name: dict(one) for name, one in description["operators"].items()}
    retired = list(description.get("retired", []))
    added: dict[str, Version] = {}
    for name, after in wanted.items():
        one = operators[name]
        taken = {other.get(KEPT_AS, its) for its, other in operators.items()} | set(retired)
        retired.append(one.get(KEPT_AS, name))
        one[KEPT_AS] = fresh_name(name, taken)
        if name in versions:
            was = description["operators"][name]
            folder = place.states.below(one[KEPT_AS])
            added[name] = _rewritten(place, was, name, folder, versions[name], after, hashes, told)
        one["shards"] = after
        one.pop(EARLIER, None)
    check()
    for segment, batch in newest.items():
        mine = [name for name in description["segments"][segment] if name in added]
        if mine:
            by_name = {operators[name][KEPT_AS]: added[name] for name in mine}
            _manifests(place, segment).extend(batch, by_name)
    result = {**description, "operators": operators, "retired": retired}
    if not any(EARLIER in one for one in operators.values()):
        result["format"] = FORMAT
    check()
    place.redescribe(result, found)
    before = {name: description["operators"][name]["shards"] for name in wanted}
    return [Resharded(name, before[name], wanted[name], rows.get(name, 0)) for name in wanted]


def _wanted(description: Mapping[str, Any], shards: Mapping[str, int] | int) -> dict[str, int]:
    """The operators whose number of shards changes, with the new one."""
    operators = description["operators"]
    asked = dict.fromkeys(operators, shards) if isinstance(shards, int) else dict(shards)
    for name, count in asked.items():
        if name not in operators:
            raise AskedWrongly(
                f"the checkpoint has no keyed operator '{name}'{nearest(name, operators)}"
            )
        if not 1 <= count <= MAX_SHARDS:
            raise AskedWrongly(f"operator '{name}': {count} shards; give 1 to {MAX_SHARDS}")
        if "schema" not in operators[name]:
            raise AskedWrongly(
                f"the checkpoint does not say which columns the state of '{name}' has; start and "
                "stop the pipeline once with this release, and try again"
            )
    return {name: count for name, count in asked.items() if operators[name]["shards"] != count}


def _versions(
    place: Checkpoint,
    description: Mapping[str, Any],
    newest: Mapping[str, int],
    wanted: Mapping[str, int],
) -> dict[str, Version]:
    """The newest version of each operator that has one."""
    found = {}
    for segment, batch in newest.items():
        manifests = _manifests(place, segment)
        there = manifests.load(batch).versions if batch >= 0 else {}
        for name in description["segments"][segment]:
            kept = description["operators"][name].get(KEPT_AS, name)
            if name in wanted and kept in there:
                found[name] = there[kept]
                manifests.verify({kept: there[kept]})
    return found


def _rewritten(
    place: Checkpoint,
    was: Mapping[str, Any],
    name: str,
    folder: Durable,
    version: Version,
    after: int,
    hashes: Hashes,
    told: Told,
) -> Version:
    """The state of an operator that was described so, written into another directory."""
    folder.make()
    folder.remove_all(folder.names())  # what an attempt has left that was killed
    old = NodeCache(
        "",
        place.states.below(was.get(KEPT_AS, name)),
        version.shards,
        earlier=earlier_layouts(was),
    )
    key = [column for column, _ in was["key"]]
    schema = with_system(schema_of(was["schema"]))
    new = NodeCache("", folder, after)
    return resharded(version, old, new, schema, key, was.get("due"), hashes, told)


def _manifests(place: Checkpoint, segment: str) -> Manifests:
    return Manifests(place.segment(segment).below("manifests"), place.states)
