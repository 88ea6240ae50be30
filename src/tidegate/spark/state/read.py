"""Reads the state of an operator at a committed version, as one Arrow table."""

from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.errors import AskedWrongly, TidegateError, nearest
from tidegate.spark.batch.checkpoint import Checkpoint, require_description
from tidegate.spark.batch.kept_names import KeptNames
from tidegate.spark.batch.layouts import earlier_layouts, schema_of
from tidegate.spark.batch.plan import Plans
from tidegate.spark.state.chains import ranges
from tidegate.spark.state.files import Durable, Missing
from tidegate.spark.state.identity import distinct
from tidegate.spark.state.layout import SLOT, SYSTEM, with_system
from tidegate.spark.state.location import location_of
from tidegate.spark.state.lookup import Reads, alive, integers, newest_first, open_chains
from tidegate.spark.state.manifest import Manifests
from tidegate.spark.state.node_cache import NodeCache
from tidegate.spark.state.version import Version

_TRIES = 20


def read_state(checkpoint: str, operator: str, version: int | None = None) -> pa.Table:
    """The state of a keyed operator after a committed batch, by default the newest one.

    The pipeline may run meanwhile, and nothing is written. If the pipeline removes the version
    before it has been read completely, a newer one is read. Rows that had passed their time-to-live
    when that batch was planned are left out.
    """
    checkpoint = location_of(checkpoint)
    place = Checkpoint(Durable(checkpoint))
    description = require_description(place)
    known = description["operators"]
    if operator not in known:
        raise AskedWrongly(
            f"the checkpoint {checkpoint} has no keyed operator '{operator}'"
            f"{nearest(operator, known)}"
        )
    segment = next(s for s, names in description["segments"].items() if operator in names)
    names = KeptNames.of(description)
    manifests = Manifests(place.segment(segment).below("manifests"), place.states)
    plans = Plans(place.segment(segment).below("plans"), names=names)
    kept = names.kept(operator)
    folder = place.states.below(kept)
    for _ in range(_TRIES):
        committed = manifests.committed()
        if not committed:
            if place.segment(segment).below("spark/commits").names():
                raise TidegateError(
                    f"the manifests in {manifests.directory.path('')} are missing, although "
                    "batches are committed; restore them from a copy of the checkpoint"
                )
            raise AskedWrongly(
                f"the checkpoint {checkpoint} has no committed batch yet; run the pipeline first"
            )
        batch_id = committed[-1] if version is None else version
        if batch_id not in committed:
            kept = ", ".join(map(str, committed))
            raise AskedWrongly(f"there is no version {batch_id}; kept versions: {kept}")
        try:
            older = batch_id < committed[-1]
            return _read_batch(
                manifests, plans, folder, operator, kept, known[operator], batch_id, older
            )
        except Missing:
            if batch_id in manifests.committed():
                raise  # the version was not removed, so one of its files is lost
    raise TidegateError(
        f"the pipeline commits faster than the state of '{operator}' can be read; read it while "
        "the pipeline is stopped"
    )


def _read_batch(
    manifests: Manifests,
    plans: Plans,
    folder: Durable,
    operator: str,
    kept: str,
    described: dict[str, Any],
    batch_id: int,
    older: bool,
) -> pa.Table:
    """The state after one batch, read as the checkpoint describes the operator."""
    schema = schema_of(described["schema"])
    versions = manifests.read(batch_id, {})
    if kept not in versions and older and operator != kept:
        raise AskedWrongly(
            f"version {batch_id} is older than the state of operator '{operator}', which was "
            "dropped or resharded since; leave the version out"
        )
    found = versions.get(kept, Version.empty(described["shards"]))
    plan = plans.newest(batch_id)
    at_us = 0 if plan is None else plan.at_us
    key = [name for name, _ in described["key"]]
    within, earlier = described["within"], earlier_layouts(described)
    return read_version(folder, found, key, within, at_us, schema, earlier)


def read_version(
    folder: Durable,
    version: Version,
    key: list[str],
    within: str | None,
    at_us: int,
    schema: pa.Schema,
    earlier: tuple[pa.Schema, ...] = (),
) -> pa.Table:
    """All live rows of a version, without Tidegate's own columns.

    `earlier` are the layouts that older files were written in.
    """
    cache = NodeCache("", folder, version.shards, earlier=earlier)
    every = np.arange(version.shards)
    parts = []
    for reach in open_chains(cache, version, every, Reads(), with_system(schema)):
        parts.append(reach.layer.rows(ranges(reach.begins, reach.ends)))
    if not parts:  # nothing was ever kept, or all of it was dropped again
        return schema.empty_table().select([name for name in schema.names if name not in SYSTEM])
    table = pa.concat_tables(parts)
    number, _ = distinct(table.column(SLOT).to_numpy(), table.select(key))
    sub = np.zeros(len(number), dtype=np.int64) if within is None else integers(table, within)
    table = table.take(pa.array(newest_first(number, sub)))
    return table.filter(pa.array(alive(table, at_us))).drop_columns(list(SYSTEM))
