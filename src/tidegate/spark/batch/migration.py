"""Whether the state in a checkpoint still fits the pipeline, and what the user says to a change.

Some changes are harmless: a longer time-to-live (every state row carries its own), another delay or
emit, a new operator, a lambda that got a name, a column of the state that is wider or new and has a
default (`layouts`). All others are refused, with what changed and with
the declarations that would allow it: an operator was renamed, its state is dropped, or its changed
function goes on with the same state.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tidegate.errors import AskedWrongly, nearest
from tidegate.pipelines.identity import OWN, extends, same_identity, shown
from tidegate.spark.batch.kept_names import KEPT_AS, fresh_name
from tidegate.spark.batch.layouts import EARLIER, FORMAT, continued, misfit

Description = dict[str, Any]

_HARD = (("key", "key"), ("shards", "shard count"), ("within", "within"))
_ALIKE = ("key", "shards", "state", "within")
"""What an operator has in common with one that was renamed."""


@dataclass(frozen=True, slots=True)
class Migration:
    """What the user declares about changes of the pipeline.

    A declaration acts once: when the checkpoint already fits the pipeline, it has no effect, so a
    restart by the same program loses nothing. `idle` finds those that are better removed.
    """

    renamed: Mapping[str, str] = field(default_factory=dict)
    """Old name of a keyed operator to its new one."""
    dropped: frozenset[str] = frozenset()
    """Operators, or segments, whose state is forgotten if it does not fit; 'operator.column' for a
    single column of the state."""
    same_state: frozenset[str] = frozenset()
    """Operators with another function that goes on with the state as it is."""

    @classmethod
    def declared(
        cls,
        renamed: Mapping[str, str] | None,
        dropped: str | Iterable[str],
        same_state: str | Iterable[str],
    ) -> "Migration":
        """The declaration as it is given to `start`, checked."""
        renamed = {} if renamed is None else renamed
        if not isinstance(renamed, Mapping):
            raise AskedWrongly(f"renamed={renamed!r}: give a mapping such as {{'old': 'new'}}")
        if len(set(renamed.values())) < len(renamed):
            raise AskedWrongly(f"renamed={dict(renamed)}: two operators get the same name")
        return cls(dict(renamed), _names(dropped), _names(same_state))


NOTHING_DECLARED = Migration()


def migrated(found: Description, wanted: Description, migration: Migration) -> Description:
    """The description of the pipeline on this checkpoint; raises `AskedWrongly` if it does not fit.

    `found` is what the checkpoint says, and `wanted` describes the pipeline on a new one.
    """
    if found["pipeline"] != wanted["pipeline"]:
        raise AskedWrongly(
            f"it belongs to pipeline '{found['pipeline']}', not '{wanted['pipeline']}'; give the "
            "pipeline its name back, or another checkpoint"
        )
    operators, segments = _renamed(found, wanted, migration.renamed)
    retired = list(found.get("retired", []))
    for name in list(operators):
        problem = _problem(name, operators, segments, wanted, migration)
        if problem is None:
            continue
        segment = next((one for one, names in segments.items() if name in names), None)
        with_segment = segment in migration.dropped and segment not in wanted["segments"]
        if name not in migration.dropped and not with_segment:
            raise AskedWrongly(problem)
        retired.append(operators.pop(name).get(KEPT_AS, name))
    gone = _gone_segments(segments, found, wanted, migration)
    _check_reads(found.get("reads", {}), wanted["reads"])
    taken = {one.get(KEPT_AS, name) for name, one in operators.items()} | set(retired)
    result = {**wanted, "operators": {}}
    for name, new in wanted["operators"].items():
        if name in operators:
            kept = operators[name].get(KEPT_AS, name)
            new = continued(operators[name], new)
        else:
            kept = fresh_name(name, taken)
            taken.add(kept)
        result["operators"][name] = new if kept == name else {**new, KEPT_AS: kept}
    if any(EARLIER in one for one in result["operators"].values()):
        result["format"] = FORMAT
    if retired:
        result["retired"] = retired
    if gone:
        result["retired_segments"] = gone
    return result


def idle(found: Description | None, wanted: Description, migration: Migration) -> list[str]:
    """Names in `dropped` and `same_state` that the checkpoint fits without.

    They allow the next change of an operator, too, which then nobody is told of.
    """
    names = migration.dropped | migration.same_state
    if found is None:
        return sorted(names)
    without = []
    for name in sorted(names):
        rest = replace(
            migration,
            dropped=migration.dropped - {name},
            same_state=migration.same_state - {name},
        )
        try:
            migrated(found, wanted, rest)
        except AskedWrongly:
            continue
        without.append(name)
    return without


def _renamed(
    found: Description, wanted: Description, renamed: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """The checkpoint's operators and segments, with operators under their new names."""
    now: dict[str, str] = {}
    for old, new in renamed.items():
        if new not in wanted["operators"]:
            raise AskedWrongly(
                f"renamed={{'{old}': '{new}'}}, but the pipeline has no keyed operator '{new}'"
                f"{nearest(new, wanted['operators'])}"
            )
        if old in found["operators"]:
            now[old] = new
        elif new not in found["operators"]:
            raise AskedWrongly(
                f"renamed={{'{old}': '{new}'}}, but it has no operator '{old}'"
                f"{nearest(old, found['operators'])}"
            )
    _refuse_collisions(found["operators"], now)
    operators = {}
    for name, one in found["operators"].items():
        moved = now.get(name)
        operators[moved or name] = {KEPT_AS: name, **one} if moved else one
    segments = {
        segment: [now.get(name, name) for name in names]
        for segment, names in found["segments"].items()
    }
    return operators, segments


def _refuse_collisions(operators: Mapping[str, Any], now: dict[str, str]) -> None:
    """Leave out renames that were done at an earlier start, and refuse those that cannot be told.

    A chain such as a to b and b to c is fine. A swap would look the same before and after it, so
    that a second start by the same program would swap again.
    """
    for old, new in list(now.items()):
        if new in operators and operators[new].get(KEPT_AS) == old:
            del now[old]  # an earlier start has done it, and the old name was given away again
        elif new in operators and new not in now:
            raise AskedWrongly(
                f"renamed={{'{old}': '{new}'}}, but it holds state of both '{old}' and '{new}'; "
                f"give the operator a name that is new, or forget the state of '{new}' first, by a "
                f"start without it and with dropped=['{new}']"
            )
    for old, new in now.items():
        at = new
        while at in now:
            at = now[at]
            if at == old:
                raise AskedWrongly(
                    f"renamed= goes round in a circle at '{old}'; rename one of them to a name "
                    "that is new, start once, and rename it again at the next start"
                )


def _problem(
    name: str,
    operators: Mapping[str, Any],
    segments: Mapping[str, list[str]],
    wanted: Description,
    migration: Migration,
) -> str | None:
    """Why the state of one operator does not fit, and what may be done about it."""
    old, new = operators[name], wanted["operators"].get(name)
    drop = f"dropped=['{name}']"
    if new is None:
        alike = [
            other
            for other, one in wanted["operators"].items()
            if other not in operators and all(one[what] == old[what] for what in _ALIKE)
        ]
        now = alike[0] if alike else "its new name"
        return (
            f"it holds state of operator '{name}', which the pipeline no longer has; start with "
            f"renamed={{'{name}': '{now}'}} if it has another name now, with {drop} to forget its "
            "state, or put the operator back"
        )
    begin = f"start with {drop} to forget its state and begin afresh, or change it back"
    for what, said in _HARD:
        if old[what] != new[what]:
            if what == "shards":
                begin = (
                    f"run `tidegate reshard CHECKPOINT {new[what]} --operator {name}` to rewrite "
                    f"its state, {begin}"
                )
            return (
                f"operator '{name}' had the {said} {_show(old[what])}, now {_show(new[what])}; "
                f"{begin}"
            )
    # Each piece of a file has the span of its due times, by the column that was the timer then.
    if old.get("due") is not None and new["due"] not in (None, old["due"]):
        return f"operator '{name}' had the timer '{old['due']}', now '{new['due']}'; {begin}"
    was = next((segment for segment, names in segments.items() if name in names), None)
    now = next(segment for segment, names in wanted["segments"].items() if name in names)
    if was != now:
        return (
            f"operator '{name}' was in segment '{was}' and now is in '{now}', which has no state "
            f"of it; {begin}"
        )
    changed = _changed_meaning(old, new)
    if changed is None or name in migration.same_state:
        columns = misfit(name, old, new, migration.dropped)
        return None if columns is None else f"{columns}; or {begin}"
    return (
        f"operator '{name}' {changed}; start with same_state=['{name}'] if the state still means "
        f"the same, with {drop} to forget it and begin afresh, or change it back"
    )


def _changed_meaning(old: Mapping[str, Any], new: Mapping[str, Any]) -> str | None:
    """What changed about the function; fields that an earlier version did not write are equal."""
    before, after = old.get("function"), new["function"]
    if before is None:
        return None
    if not same_identity(before, after) and not extends(before, after):
        return f"had the function {shown(before)}, now {shown(after)}"
    if after["function"] != OWN:
        return None
    if old.get("order_by", new["order_by"]) != new["order_by"]:
        return f"had order_by={old['order_by']!r}, now {new['order_by']!r}"
    types = dict(new["rows"])
    for column, kind in old.get("rows", []):
        if types.get(column, kind) != kind:
            return f"read the column '{column}' as {kind}, now as {types[column]}"
    return None


def _gone_segments(
    segments: Mapping[str, list[str]],
    found: Description,
    wanted: Description,
    migration: Migration,
) -> list[str]:
    """The segments that were dropped, with earlier ones; one that only disappeared is refused."""
    gone = list(found.get("retired_segments", []))
    for segment in segments:
        if segment in wanted["segments"]:
            continue
        if segment not in migration.dropped:
            raise AskedWrongly(
                f"it has a segment '{segment}', which the pipeline no longer has; start with "
                f"dropped=['{segment}'] to give up the rows that it has not processed, or put it "
                "back under its old name"
            )
        gone.append(segment)
    for segment in wanted["segments"]:
        if segment in gone:
            raise AskedWrongly(
                f"the segment '{segment}' was dropped from it, and its files are still there; give "
                "the cut, loop or source that it reads another name"
            )
    return gone


def _check_reads(found: Mapping[str, list[str]], wanted: Mapping[str, list[str]]) -> None:
    """Spark's offsets have no names: the first is that of the first source, and so on."""
    for segment, old in found.items():
        new = wanted.get(segment, old)
        if old != new:
            raise AskedWrongly(
                f"segment '{segment}' read {' and '.join(old)} in this order, now "
                f"{' and '.join(new)}, and Spark finds the offset of a source by its position; "
                "write the sources as they were, or give another checkpoint"
            )


def _names(given: str | Iterable[str]) -> frozenset[str]:
    return frozenset([given] if isinstance(given, str) else given)


def _show(value: Any) -> str:
    if isinstance(value, list):
        return "(" + ", ".join(f"{name} {kind}" for name, kind in value) + ")"
    return str(value)
