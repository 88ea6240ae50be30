"""What can be varied in Rolling Flight Distances; window and interval are MST's by default."""

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.apps.option_values import options_of
from tidegate.errors import AskedWrongly

MEANINGS = {
    "aircraft": "how many aircraft are in the air; default 4000",
    "near_km": "flights closer than this are emitted; default 10",
    "ahead_s": "for how many seconds ahead positions are predicted; default 30",
    "window_s": "after how many seconds a report is too old, a multiple of every_s; default 60",
    "every_s": "how often distances are computed, in seconds; default 5",
}
MOST_AIRCRAFT = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class FlightOptions:
    """The flights, and which of them are close."""

    aircraft: int = 4_000
    near_km: float = 10.0
    ahead_s: int = 30
    window_s: int = 60
    every_s: int = 5

    def __post_init__(self) -> None:
        if not 1 <= self.aircraft <= MOST_AIRCRAFT:
            raise AskedWrongly(f"aircraft={self.aircraft}: give 1 to {MOST_AIRCRAFT}")
        if not 0.1 <= self.near_km <= 1000.0:
            raise AskedWrongly(f"near_km={self.near_km:g}: give 0.1 to 1000 kilometres")
        if not 0 <= self.ahead_s <= 600:
            raise AskedWrongly(f"ahead_s={self.ahead_s}: give 0 to 600 seconds")
        if self.every_s < 1:
            raise AskedWrongly(f"every_s={self.every_s}: give 1 second or more")
        if not (self.every_s <= self.window_s <= 3600 and self.window_s % self.every_s == 0):
            raise AskedWrongly(
                f"window_s={self.window_s}: give a multiple of every_s={self.every_s}, up to 3600"
            )

    @property
    def near_m(self) -> int:
        """The threshold in whole metres."""
        return round(self.near_km * 1000)


def flight_options(extra: Mapping[str, str]) -> FlightOptions:
    """The options as an application is given them: names and texts."""
    return options_of(FlightOptions, "flights", extra)
