"""Generates Nexmark's events: of 50, one is a new person, three are auctions and 46 are bids.

The distributions are those of the benchmark's generator with its default settings: most auctions
are sold by the newest "hot" seller and half of the bids go to the newest hot auction. An event is
a pure function of its number, the rate profile and the seed. Of its columns, those are left out
that no query reads: addresses, credit cards, descriptions and padding.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.pipelines.derived import Derived
from tidegate.workload.counter import uniforms, words
from tidegate.workload.profile import Profile

PERSONS, AUCTIONS, BIDS = KINDS = ("persons", "auctions", "bids")
SCHEMAS = {
    PERSONS: "id long, name string, city string, state string, timestamp timestamp",
    AUCTIONS: "id long, seller long, category long, reserve long, timestamp timestamp",
    BIDS: "auction long, bidder long, price long, timestamp timestamp",
}
FIRST_US = 1_000_000_000_000_000
"""When the first event happens, in microseconds since the epoch. It is fixed: with the clock's
time, windows would differ from run to run."""

OF_ROUND = 50
"""Events after which the kinds repeat: first the person, then the auctions, then the bids."""
PERSON_PART, AUCTION_PART = 1, 3
FIRST_PERSON = FIRST_AUCTION = 1000
FIRST_CATEGORY, CATEGORIES = 10, 5
_ACTIVE_PERSONS, _AUCTIONS_IN_FLIGHT, _LEAD = 1000, 100, 10
HOT_EVERY = 100
"""Every so many persons and auctions there is a new hot one."""
_HOT_SELLERS, _HOT_AUCTIONS, _HOT_BIDDERS = 4, 2, 4
"""All but one in so many draws are the hot one."""
_CITIES = ["Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland"]
_CITIES += ["Bend", "Redmond", "Seattle", "Kent", "Cheyenne"]
_STATES = ["AZ", "CA", "ID", "OR", "WA", "WY"]
_FIRST_NAMES = ["Peter", "Paul", "Luke", "John", "Saul", "Vicky"]
_FIRST_NAMES += ["Kate", "Julie", "Sarah", "Deiter", "Walter"]
_LAST_NAMES = ["Shultz", "Abrams", "Spencer", "White", "Bartels"]
_LAST_NAMES += ["Walton", "Smith", "Jones", "Noris"]
_NAMES = [
    "Peter",
    "Paul",
    "Luke",
    "John",
    "Saul",
    "Vicky",
    "Kate",
    "Julie",
    "Sarah",
    "Deiter",
    "Walter",
]
_LAST_NAMES = [
    "Shultz",
    "Abrams",
    "Spencer",
    "White",
    "Bartels",
    "Walton",
    "Smith",
    "Jones",
    "Noris",
]
_NAMES = [f"{first} {last}" for first in _FIRST_NAMES for last in _LAST_NAMES]
_NAME, _CITY, _STATE, _HOT, _COLD, _BIDDER_HOT, _BIDDER, _CATEGORY, _PRICE, _RESERVE = range(81, 91)
"""Streams of random numbers, one for each choice."""
_TIME = pa.timestamp("us", "UTC")

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class NexmarkEvents:
    """What the events of a run are made from."""

    profile: Profile
    """When events happen."""
    seed: int = 1
    speed: float = 1.0
    """Seconds of event time that pass in a second of the profile."""
    hot_every: int = HOT_EVERY
    """Every so many persons and auctions there is a new hot one."""

    def of(self, kind: str, numbers: Ints) -> pa.Table:
        """The events of one kind among those with these numbers."""
        make = {PERSONS: self.persons, AUCTIONS: self.auctions, BIDS: self.bids}[kind]
        return make(numbers[is_kind(kind, numbers)])

    def persons(self, numbers: Ints) -> pa.Table:
        """The persons with these event numbers."""
        columns = {
            "id": FIRST_PERSON + _last_person(numbers),
            "name": self._one_of(_NAMES, numbers, _NAME),
            "city": self._one_of(_CITIES, numbers, _CITY),
            "state": self._one_of(_STATES, numbers, _STATE),
            "timestamp": _times(self.times_us(numbers)),
        }
        return pa.table(columns)

    def auctions(self, numbers: Ints) -> pa.Table:
        """The auctions with these event numbers."""
        last = _last_person(numbers)
        hot = self._below(_HOT_SELLERS, numbers, _HOT) > 0
        seller = np.where(hot, self._newest_hot(last), self._person(numbers, _COLD))
        first_bid = self._price(numbers, _PRICE)
        columns = {
            "id": FIRST_AUCTION + _last_auction(numbers),
            "seller": FIRST_PERSON + seller,
            "category": FIRST_CATEGORY + self._below(CATEGORIES, numbers, _CATEGORY),
            "reserve": first_bid + self._price(numbers, _RESERVE),
            "timestamp": _times(self.times_us(numbers)),
        }
        return pa.table(columns)

    def bids(self, numbers: Ints) -> pa.Table:
        """The bids with these event numbers."""
        last = _last_auction(numbers)
        first = np.maximum(last - _AUCTIONS_IN_FLIGHT, 0)
        cold = first + self._below(last - first + 1 + _LEAD, numbers, _COLD)
        hot = self._below(_HOT_AUCTIONS, numbers, _HOT) > 0
        auction = np.where(hot, self._newest_hot(last), cold)
        hot_bidder = self._below(_HOT_BIDDERS, numbers, _BIDDER_HOT) > 0
        known = _last_person(numbers)
        bidder = np.where(hot_bidder, self._newest_hot(known) + 1, self._person(numbers, _BIDDER))
        columns = {
            "auction": FIRST_AUCTION + auction,
            "bidder": FIRST_PERSON + bidder,
            "price": self._price(numbers, _PRICE),
            "timestamp": _times(self.times_us(numbers)),
        }
        return pa.table(columns)

    def times_us(self, numbers: Ints) -> Ints:
        """When events happen, in microseconds since the epoch."""
        reached_us = self.profile.arrival_us(numbers)
        if self.speed != 1.0:
            reached_us = (reached_us * self.speed).astype(np.int64)
        happened: Ints = FIRST_US + reached_us
        return happened

    def _person(self, numbers: Ints, stream: int) -> Ints:
        """One of the newest persons, or one of the next to come."""
        known = _last_person(numbers) + 1
        active = np.minimum(known, _ACTIVE_PERSONS)
        return known - active + self._below(active + _LEAD, numbers, stream)

    def _newest_hot(self, newest: Ints) -> Ints:
        """The newest hot one, by the number of the newest one."""
        return newest // self.hot_every * self.hot_every

    def _price(self, numbers: Ints, stream: int) -> Ints:
        """Prices in cents, from one to a million dollars, as likely in each power of ten."""
        drawn = uniforms(words(numbers, self.seed, stream))
        price: Ints = np.rint(10.0 ** (6.0 * drawn) * 100.0).astype(np.int64)
        return price

    def _below(self, most: int | Ints, numbers: Ints, stream: int) -> Ints:
        """Whole numbers from 0, below the given ones."""
        drawn = words(numbers, self.seed, stream) % np.asarray(most).astype(np.uint64)
        return drawn.astype(np.int64)

    def _one_of(self, values: list[str], numbers: Ints, stream: int) -> pa.Array:
        return pa.array(values).take(pa.array(self._below(len(values), numbers, stream)))


def is_kind(kind: str, numbers: Ints) -> npt.NDArray[np.bool_]:
    """Whether the events with these numbers are of a kind."""
    first, end = {
        PERSONS: (0, PERSON_PART),
        AUCTIONS: (PERSON_PART, PERSON_PART + AUCTION_PART),
        BIDS: (PERSON_PART + AUCTION_PART, OF_ROUND),
    }[kind]
    place = numbers % OF_ROUND
    return (place >= first) & (place < end)


def kind_map(events: NexmarkEvents, kind: str) -> Callable[[pa.Table], Derived]:
    """A first step of a pipeline: row numbers become the events of one kind."""

    def happen(rows: pa.Table) -> Derived:
        numbers = rows["seq"].to_numpy()
        return Derived(events.of(kind, numbers), is_kind(kind, numbers))

    return happen


def _last_person(numbers: Ints) -> Ints:
    """The number of the newest person at each event, counted from 0."""
    newest: Ints = numbers // OF_ROUND
    return newest


def _last_auction(numbers: Ints) -> Ints:
    """The number of the newest auction at each event, counted from 0; -1 before the first."""
    rounds, place = np.divmod(numbers, OF_ROUND)
    newest: Ints = rounds * AUCTION_PART + np.clip(place - PERSON_PART, -1, AUCTION_PART - 1)
    return newest


def _times(microseconds: Ints) -> pa.Array:
    return pa.array(microseconds).view(_TIME)
