"""Generates the events of an advertising network as JSON, with the fields of Yahoo's benchmark.

An event is a pure function of its number, the rate profile and the seed. Events reach the pipeline
up to two seconds after they happened, so they are out of order, as from many devices.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.apps.campaigns.identifiers import ADS, PAGES, USERS, identifiers
from tidegate.apps.campaigns.options import CampaignOptions
from tidegate.apps.json_columns import json_objects
from tidegate.workload.counter import words
from tidegate.workload.profile import Profile

SCHEMA = "event string"
VIEW = "view"
TYPES = pa.array([VIEW, "click", "purchase"])
KINDS = pa.array(["banner", "modal", "sponsored-search", "mail", "mobile"])
LATEST_MS = 2000
"""An event reaches the pipeline less than so long after it happened."""
FIRST_MS = 1_000_000_000_000
"""When the first event reaches the pipeline, in milliseconds since the epoch. It is fixed: with the
clock's time, windows would differ from run to run."""
_PEOPLE = 100
"""Users and pages, as in Yahoo's generator."""
_USER, _PAGE, _AD, _KIND, _TYPE, _LATE = range(65, 71)
"""Streams of random numbers, one for each field."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class AdEvents:
    """What the events of a run are made from."""

    profile: Profile
    """When events reach the pipeline; event time follows it."""
    options: CampaignOptions
    seed: int = 1

    def texts(self, numbers: Ints) -> pa.Array:
        """The events with these numbers, one JSON object each."""
        seed, ads = self.seed, self.options.all_ads
        address = pa.repeat(pa.scalar("1.2.3.4"), len(numbers))
        return json_objects(
            {
                "user_id": self._drawn(numbers, _USER, identifiers(USERS, _PEOPLE, seed)),
                "page_id": self._drawn(numbers, _PAGE, identifiers(PAGES, _PEOPLE, seed)),
                "ad_id": self._drawn(numbers, _AD, identifiers(ADS, ads, seed)),
                "ad_type": self._drawn(numbers, _KIND, KINDS),
                "event_type": self._drawn(numbers, _TYPE, TYPES),
                "event_time": pa.array(self.times_ms(numbers)),
                "ip_address": address,
            }
        )

    def times_ms(self, numbers: Ints) -> Ints:
        """When the events happened, in milliseconds since the epoch."""
        late = words(numbers, self.seed, _LATE) % np.uint64(LATEST_MS)
        happened: Ints = FIRST_MS + self.profile.arrival_us(numbers) // 1000 - late.astype(np.int64)
        return happened

    def _drawn(self, numbers: Ints, stream: int, values: pa.Array) -> pa.Array:
        """One of the values for each event, all equally likely."""
        drawn = words(numbers, self.seed, stream) % np.uint64(len(values))
        return values.take(pa.array(drawn))


def event_map(events: AdEvents) -> Callable[[pa.Table], pa.Table]:
    """The first step of the pipeline: row numbers become events."""

    def happen(rows: pa.Table) -> pa.Table:
        return pa.table({"event": events.texts(rows["seq"].to_numpy())})

    return happen
