"""What a producer sends: rows of a rate profile, as records of a topic.

The record's key is the row's key as text. Its value is JSON with all columns, or the key alone, as
words are sent to programs that count them. Its timestamp is the row's arrival.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as compute

from tidegate.errors import AskedWrongly
from tidegate.workload.keys import Keys, parse_keys
from tidegate.workload.parse import parse_profile
from tidegate.workload.profile import Profile
from tidegate.workload.rows import RowColumns, rows_between

FORMS = ("json", "key")


@dataclass(frozen=True, slots=True)
class TopicLoad:
    """Rows that arrive by a profile for some seconds; the same load always has the same rows."""

    profile: Profile
    keys: Keys
    seconds: float
    seed: int = 0
    form: str = "json"
    """`json`: {"key": 17, "value": 0.5, "seq": 3}; `key`: 17."""

    def __post_init__(self) -> None:
        if not self.seconds > 0:
            raise AskedWrongly(f"a load of {self.seconds:g} seconds is not possible; give more")
        if self.form not in FORMS:
            raise AskedWrongly(f"'{self.form}' is no form of a value; give {' or '.join(FORMS)}")

    @staticmethod
    def of(
        profile: Profile | str,
        keys: Keys | str,
        seconds: float,
        seed: int = 0,
        form: str = "json",
    ) -> "TopicLoad":
        """A load from the short forms of profile and keys."""
        return TopicLoad(
            parse_profile(profile) if isinstance(profile, str) else profile,
            parse_keys(keys) if isinstance(keys, str) else keys,
            seconds,
            seed,
            form,
        )

    def document(self) -> dict[str, Any]:
        """What JSON can hold; `of_document` reads it."""
        return {
            "profile": str(self.profile),
            "keys": str(self.keys),
            "seconds": self.seconds,
            "seed": self.seed,
            "form": self.form,
        }

    @staticmethod
    def of_document(document: Mapping[str, Any]) -> "TopicLoad":
        """What `document` gave."""
        return TopicLoad.of(**document)

    @property
    def count(self) -> int:
        """All rows of the load."""
        return self.arrived(round(self.seconds * 1000))

    def arrived(self, ms: int) -> int:
        """Rows that have arrived by this millisecond after the start."""
        return self.profile.count(min(ms, round(self.seconds * 1000)))

    def rows(self, first: int, end: int) -> RowColumns:
        """The rows from number `first` up to, but not including, `end`."""
        return rows_between(self.profile, self.keys, self.seed, first, end)


def encoded(rows: RowColumns, form: str) -> tuple[list[bytes], list[bytes]]:
    """Keys and values of the records, made column by column."""
    key = pa.array(rows.key).cast(pa.string())
    keys = key.cast(pa.binary()).to_pylist()
    if form == "key":
        return keys, keys
    parts = ('{"key":', key, ',"value":', _text(rows.value), ',"seq":', _text(rows.seq), "}")
    joined = compute.binary_join_element_wise(*parts, "")
    return keys, joined.cast(pa.binary()).to_pylist()


def _text(column: object) -> pa.StringArray:
    return pa.array(column).cast(pa.string())
