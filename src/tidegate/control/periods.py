"""Periods that come again every day or week, such as `mon-fri 09:00-10:00 Europe/Berlin`.

They are written in the wall-clock time of a time zone, UTC if none is named. So 09:00 stays 09:00
when the clocks of that zone are put forward or back.
"""

import difflib
import re
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo, available_timezones

from tidegate.errors import AskedWrongly

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
EVERY_DAY = frozenset(range(len(DAYS)))
EXAMPLE = "write it like 09:00-10:00, or mon-fri 09:00-10:00 Europe/Berlin"
_DAY_S = 86_400
_TIMES = re.compile(r"(\d{1,2}):(\d{2})-(\d{1,2}):(\d{2})")
_AROUND_DASH = re.compile(r"\s*-\s*")
_AROUND_COMMA = re.compile(r"\s*,\s*")


@dataclass(frozen=True, slots=True)
class Period:
    """From `begin_s` to `end_s` of some days; past midnight when the end is not later.

    A period that goes past midnight belongs to the day on which it begins.
    """

    begin_s: int
    end_s: int
    days: frozenset[int] = EVERY_DAY
    """Monday is 0."""
    zone: str = "UTC"

    @classmethod
    def parse(cls, text: str) -> "Period":
        """Read a period written as `[DAYS] HH:MM-HH:MM [TIME ZONE]`."""
        words = _AROUND_COMMA.sub(",", _AROUND_DASH.sub("-", text.strip())).split()
        times = [word for word in words if ":" in word]
        if len(times) != 1 or not 1 <= len(words) <= 3:
            raise AskedWrongly(f"'{text}' is not a period; {EXAMPLE}")
        place = words.index(times[0])
        before, after = words[:place], words[place + 1 :]
        if len(before) > 1 or len(after) > 1:
            raise AskedWrongly(f"'{text}' is not a period; {EXAMPLE}")
        begin_s, end_s = _times(times[0], text)
        days = _days(before[0], text) if before else EVERY_DAY
        return cls(begin_s, end_s, days, _zone(after[0], text) if after else "UTC")

    def holds(self, at_s: float) -> bool:
        """Whether a time (seconds since the epoch) lies within the period."""
        wall = datetime.fromtimestamp(at_s, ZoneInfo(self.zone))
        of_day = 3600 * wall.hour + 60 * wall.minute + wall.second
        today = wall.weekday() in self.days
        if self.begin_s < self.end_s:
            return today and self.begin_s <= of_day < self.end_s
        yesterday = (wall.weekday() - 1) % len(DAYS) in self.days
        return (today and of_day >= self.begin_s) or (yesterday and of_day < self.end_s)

    def __str__(self) -> str:
        begin, end = divmod(self.begin_s // 60, 60), divmod(self.end_s // 60, 60)
        times = f"{begin[0]:02}:{begin[1]:02}-{end[0]:02}:{end[1]:02} {self.zone}"
        if self.days == EVERY_DAY:
            return times
        return f"{','.join(DAYS[day] for day in sorted(self.days))} {times}"


def _times(text: str, whole: str) -> tuple[int, int]:
    match = _TIMES.fullmatch(text)
    hours = [int(part) for part in match.groups()] if match else []
    if not hours or hours[0] > 23 or hours[2] > 24 or max(hours[1], hours[3]) > 59:
        raise AskedWrongly(f"'{whole}' is not a period; {EXAMPLE}")
    begin_s, end_s = 3600 * hours[0] + 60 * hours[1], 3600 * hours[2] + 60 * hours[3]
    if begin_s == end_s or end_s > _DAY_S:
        raise AskedWrongly(
            f"'{whole}' is not a period; let its end differ from its start and be 24:00 at the"
            " latest"
        )
    return begin_s, end_s


def _days(text: str, whole: str) -> frozenset[int]:
    """Days such as `mon-fri`, `sat,sun` or `fri-mon`."""
    found: set[int] = set()
    for part in text.lower().split(","):
        first, _, last = part.partition("-")
        unknown = [day for day in (first, last or first) if day not in DAYS]
        if unknown:
            raise AskedWrongly(
                f"'{whole}': '{unknown[0]}' is no day of the week; use {', '.join(DAYS)}"
            )
        begin, end = DAYS.index(first), DAYS.index(last or first)
        found.update((begin + n) % len(DAYS) for n in range((end - begin) % len(DAYS) + 1))
    return frozenset(found)


def _zone(text: str, whole: str) -> str:
    known = available_timezones() | {"UTC"}
    if text in known:
        return text
    close = difflib.get_close_matches(text, known, n=1)
    hint = f"did you mean '{close[0]}'?" if close else "use a name such as Europe/Berlin"
    raise AskedWrongly(f"'{whole}': there is no time zone '{text}'; {hint}")
