"""The record of a tick: what was measured, predicted, decided and expected, and if it was done.

The live view, the report and the metrics are made from records alone. Records are stored as JSON
lines in the checkpoint directory, in the format that `VERSION` names.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from tidegate import columns
from tidegate.control.bottleneck import Bottleneck
from tidegate.control.decision import Decision
from tidegate.control.lag import Lag, PartitionLag
from tidegate.control.measurement import (
    BatchMeasurement,
    ExecutorMeasurement,
    Latency,
    Measurement,
    OperatorMeasurement,
    Overdue,
    SegmentMeasurement,
)
from tidegate.control.no_effect import NoEffect
from tidegate.control.notice import Notice
from tidegate.control.row_counts import ClassCount, SourceCount
from tidegate.errors import TidegateError

VERSION = 2
_READABLE = (1, 2)
"""Version 1 kept the share of cores in the measurement, as `cores_allowed`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One tick of the control loop."""

    tick: int
    policy: str
    target_s: float | None
    measurement: Measurement
    decision: Decision
    acted: bool
    """False when the decision changes nothing, was held back, or was made in a dry run."""
    held_back: str | None = None
    """Why a decision that wanted a change was not acted on."""
    proposed: Decision | None = None
    """What was decided before the user's `approve` changed it; None where it changed nothing."""
    beliefs: Mapping[str, float] = field(default_factory=dict)
    """What the models believed: for example `main.a0_s`, `main.w_s`, `forecast_rate`, `margin`."""
    predicted_latency_s: float | None = None
    """The mean latency that was predicted when the allocation in force was chosen."""
    bottleneck: Bottleneck | None = None
    """The operator that limited the pipeline, or would be the first to; None while unknown."""
    no_effect: NoEffect | None = None
    """Why no core is added, if the last scale-outs had no effect; else None."""
    share: int | None = None
    """Cores that the application's other pipelines left to this one; None: there were no others."""
    notices: tuple[Notice, ...] = ()
    """What began or ended with this tick, or since the last one, that a person should hear of."""
    assembly: Mapping[str, Any] | None = None
    """What the controller was built from (`control/assembly.py`); only in a run's first record, in
    the first one of each of its files, and in the first one after a change of settings."""
    recalled: Mapping[str, Any] | None = None
    """What the controller began with (`Controller.recall`); only in a run's first record, and None
    where it began with nothing."""

    def to_json(self) -> str:
        """The record as one line of JSON."""
        document = {"version": VERSION, **_fields(self)}
        return columns.dumps(document, _plain, allow_nan=False)

    @classmethod
    def from_json(cls, line: str) -> "Record":
        """Read a line that `to_json` wrote; an unknown version raises an error that names it."""
        document: dict[str, Any] = json.loads(line)
        version = document.pop("version", None)
        if version not in _READABLE:
            raise TidegateError(f"a record of version {version}; this Tidegate reads {VERSION}")
        if version == 1:
            document["share"] = document["measurement"].pop("cores_allowed", None)
        document["measurement"] = _measurement(document["measurement"])
        document["decision"] = _decision(document["decision"])
        proposed = document.get("proposed")
        document["proposed"] = None if proposed is None else _decision(proposed)
        document["bottleneck"] = _bottleneck(document.get("bottleneck"))
        no_effect = document.get("no_effect")
        document["no_effect"] = None if no_effect is None else NoEffect(**no_effect)
        document["notices"] = tuple(Notice(**one) for one in document.get("notices", ()))
        return cls(**document)


def _fields(value: Any) -> dict[str, Any]:
    """The fields of a dataclass, as they are.

    `asdict` would copy every number of every shard, which took longer than all else in a tick.
    """
    return {one.name: getattr(value, one.name) for one in fields(value)}


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return _fields(value)
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"a record cannot hold {type(value).__name__}")


def _measurement(document: dict[str, Any]) -> Measurement:
    latency, overdue = document["latency"], document.get("overdue")
    return Measurement(
        **{
            **document,
            "latency": None if latency is None else Latency(**latency),
            "operators": tuple(_operator(entry) for entry in document["operators"]),
            "segments": tuple(_segment(entry) for entry in document["segments"]),
            "overdue": None if overdue is None else Overdue(**overdue),
            "executors": tuple(
                ExecutorMeasurement(**entry) for entry in document.get("executors", ())
            ),
            "sources": tuple(_source(entry) for entry in document.get("sources", ())),
        }
    )


_TUPLES = ("route", "shard_rows", "nodes", "inputs", "task_rates", "executors")


def _operator(entry: dict[str, Any]) -> OperatorMeasurement:
    tuples = {name: tuple(entry.get(name, ())) for name in _TUPLES}
    # Records from before it was told: only maps whose rows are dealt had both.
    dealt = entry.get("dealt", bool(tuples["route"] and tuples["task_rates"]))
    return OperatorMeasurement(**{**entry, **tuples, "dealt": dealt})


def _segment(entry: dict[str, Any]) -> SegmentMeasurement:
    batches = tuple(BatchMeasurement(**batch) for batch in entry["batches"])
    latency = entry.get("latency")
    told = None if latency is None else Latency(**latency)
    lag = _lag(entry.get("lag"))
    return SegmentMeasurement(**{**entry, "batches": batches, "latency": told, "lag": lag})


def _lag(entry: dict[str, Any] | None) -> Lag | None:
    """None for records from before lag was measured, and where no source tells it."""
    if entry is None:
        return None
    return Lag(**{**entry, "partitions": tuple(PartitionLag(**one) for one in entry["partitions"])})


def _source(entry: dict[str, Any]) -> SourceCount:
    return SourceCount(
        **{
            **entry,
            "classes": tuple(ClassCount(**part) for part in entry["classes"]),
            "groups_offered": tuple(entry["groups_offered"]),
            "groups_kept": tuple(entry["groups_kept"]),
        }
    )


def _decision(document: dict[str, Any]) -> Decision:
    moves = {
        operator: {int(shard): task for shard, task in entry.items()}
        for operator, entry in document["moves"].items()
    }
    deal = {name: tuple(shares) for name, shares in document.get("deal", {}).items()}
    notes = tuple(document["notes"])
    document["release_first"] = tuple(document.get("release_first", ()))
    return Decision(**{**document, "moves": moves, "deal": deal, "notes": notes})


def _bottleneck(document: dict[str, Any] | None) -> Bottleneck | None:
    """None for records from before bottlenecks were recorded."""
    if document is None:
        return None
    return Bottleneck(**{**document, "beside": tuple(document["beside"])})
