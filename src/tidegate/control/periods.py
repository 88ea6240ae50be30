"""Periods of the day in which nothing may change, such as 09:00-10:00 (UTC)."""

import re
from dataclasses import dataclass

from tidegate.errors import AskedWrongly

_DAY_S = 86_400
_PERIOD = re.compile(r"\s*(\d{1,2}):(\d{2})\s*-\s*(\d{1,2}):(\d{2})\s*")


@dataclass(frozen=True, slots=True)
class Period:
    """From `begin_s` to `end_s` of every day in UTC; past midnight when the end is earlier."""

    begin_s: int
    end_s: int

    @classmethod
    def parse(cls, text: str) -> "Period":
        """Read a period written as `HH:MM-HH:MM`."""
        match = _PERIOD.fullmatch(text)
        hours = [int(part) for part in match.groups()] if match else []
        if not hours or hours[0] > 23 or hours[2] > 24 or max(hours[1], hours[3]) > 59:
            raise AskedWrongly(f"'{text}' is not a period of the day; write it like 09:00-10:00")
        begin_s, end_s = 3600 * hours[0] + 60 * hours[1], 3600 * hours[2] + 60 * hours[3]
        if begin_s == end_s or end_s > _DAY_S:
            raise AskedWrongly(
                f"'{text}' is not a period of the day; let its end differ from its start and be"
                " 24:00 at the latest"
            )
        return cls(begin_s, end_s)

    def holds(self, at_s: float) -> bool:
        """Whether a time (seconds since the epoch) lies within the period."""
        of_day = at_s % _DAY_S
        if self.begin_s < self.end_s:
            return self.begin_s <= of_day < self.end_s
        return of_day >= self.begin_s or of_day < self.end_s

    def __str__(self) -> str:
        begin, end = divmod(self.begin_s // 60, 60), divmod(self.end_s // 60, 60)
        return f"{begin[0]:02}:{begin[1]:02}-{end[0]:02}:{end[1]:02}"
