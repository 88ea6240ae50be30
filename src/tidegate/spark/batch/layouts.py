"""The layouts of an operator's state in the checkpoint's description, and changes of them.

`schema` has the columns of the newest layout, and `earlier` those that older files may have, by the
numbers in the names of these files. A start that gives the operator other columns appends one: that
is one file, written atomically, so a crash leaves the old layout or the new one.
"""

from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa

from tidegate.pipelines.defaults import DEFAULT
from tidegate.pipelines.identity import OWN
from tidegate.spark.state.evolution import added, given_up, too_narrow
from tidegate.spark.state.layout import with_system

EARLIER = "earlier"
FORMAT = 2
"""The format of a checkpoint with files of several layouts: earlier releases cannot read it."""

Described = Mapping[str, Any]


def packed_schema(schema: pa.Schema) -> str:
    """Arrow's own encoding of a schema, for tools that read the state without the pipeline."""
    return bytes(schema.serialize()).hex()


def schema_of(packed: str) -> pa.Schema:
    """The reverse of `packed_schema`."""
    return pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(packed)))


def earlier_layouts(described: Described) -> tuple[pa.Schema, ...]:
    """The columns of older files of an operator, by the numbers of their layouts."""
    return tuple(with_system(schema_of(packed)) for packed in described.get(EARLIER, []))


def misfit(name: str, old: Described, new: Described, dropped: Collection[str]) -> str | None:
    """Why state with the old columns cannot be read with the new ones, and what may be done.

    `dropped` names columns that may be forgotten, as 'operator.column'.
    """
    if old["state"] == new["state"]:
        return None
    if "schema" not in old:  # an early version did not write the types so that they can be read
        return f"operator '{name}' had the state {_show(old['state'])}, now {_show(new['state'])}"
    before, after = schema_of(old["schema"]), schema_of(new["schema"])
    for column, was, now in too_narrow(before, after):
        return (
            f"operator '{name}' had the state column '{column}' as {was}, now as {now}, in which "
            "not every value of it is the same; declare the type that it had, or a wider one"
        )
    for column in given_up(before, after):
        if f"{name}.{column}" not in dropped:
            return (
                f"operator '{name}' no longer has the state column '{column}'; start with "
                f"dropped=['{name}.{column}'] to forget that column"
            )
    for field in added(before, after):
        if field.name in (new["within"], new.get("due")):
            return (
                f"operator '{name}' has a new state column '{field.name}' that tells its state "
                "rows apart or when they are due, which rows from before it do not"
            )
        noted = DEFAULT in (field.metadata or {})
        if not noted and (new["function"].get("function") == OWN or not field.nullable):
            return (
                f"operator '{name}' has a new state column '{field.name}'; say what it is in rows "
                f"from before, as in keyed(..., defaults={{'{field.name}': 0}})"
            )
    return None


def continued(old: Described, new: Described) -> dict[str, Any]:
    """The description of an operator that goes on with its state, which fits."""
    if old["state"] == new["state"]:
        # The default of a column stays what it was when the column was added: merged files have it.
        kept = {name: old[name] for name in ("schema", EARLIER) if EARLIER in old}
        return {**new, **kept}
    return {**new, EARLIER: [*old.get(EARLIER, []), old["schema"]]}


def gained(old: Described, new: Described) -> list[str]:
    """What is new about the columns, in words for the log."""
    if old["state"] == new["state"] or "schema" not in old:
        return []
    before, after = schema_of(old["schema"]), schema_of(new["schema"])
    words = [f"'{column.name}' is new" for column in added(before, after)]
    words += [f"'{column}' is given up" for column in given_up(before, after)]
    for column in after:
        was = before.field(column.name).type if column.name in before.names else column.type
        if was != column.type:
            words.append(f"'{column.name}' was {was} and is {column.type}")
    return words


def _show(columns: list[list[str]]) -> str:
    return "(" + ", ".join(f"{name} {kind}" for name, kind in columns) + ")"
