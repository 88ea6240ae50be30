"""A join row by row, in plain Python: what the columnar one is compared with."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

Row = tuple[object, int | None, int]
"""The key, the event time and a number that tells the row."""


@dataclass
class JoinByHand:
    """Two lists of rows that wait, and the watermark."""

    how: str
    before_us: int | None
    after_us: int | None
    delay_us: int
    waiting: tuple[list[list], list[list]] = field(default_factory=lambda: ([], []))
    apart: bool = False
    """Whether the watermark follows the side that is behind; else the newest row of both."""
    newest_us: list[int | None] = field(default_factory=lambda: [None, None])
    late_rows: int = 0

    def run(self, lefts: list[Row], rights: list[Row]) -> Counter:
        """One micro-batch; a result is (key, left number, right number), None where unmatched."""
        bounded = self.before_us is not None
        watermark = self._watermark()
        out: Counter = Counter()
        for side, rows in ((0, lefts), (1, rights)):
            for key, time, number in rows:
                if bounded and (time is None or (watermark is not None and time < watermark)):
                    self.late_rows += 1
                elif key is None:
                    out.update(self._alone(side, key, number))
                else:
                    met = False
                    for other in self.waiting[1 - side]:
                        left, right = (time, other[1]) if side == 0 else (other[1], time)
                        if key == other[0] and self._near(left, right):
                            pair = (number, other[2]) if side == 0 else (other[2], number)
                            out[(key, *pair)] += 1
                            other[3] = met = True
                    self.waiting[side].append([key, time, number, met])
        if bounded:
            if watermark is not None:
                for side, most in ((0, self.after_us), (1, self.before_us)):
                    for row in [r for r in self.waiting[side] if r[1] + most < watermark]:
                        self.waiting[side].remove(row)
                        if not row[3]:
                            out.update(self._alone(side, row[0], row[2]))
            for side, rows in ((0, lefts), (1, rights)):
                known = [self.newest_us[side], *(time for _, time, _ in rows)]
                self.newest_us[side] = max((t for t in known if t is not None), default=None)
        return out

    def _watermark(self) -> int | None:
        known = [time for time in self.newest_us if time is not None]
        if not known or (self.apart and len(known) < 2):
            return None
        return (min(known) if self.apart else max(known)) - self.delay_us

    def _near(self, left: int, right: int) -> bool:
        if self.before_us is None:
            return True
        return left - self.before_us <= right <= left + self.after_us

    def _alone(self, side: int, key: object, number: int) -> Iterator[tuple]:
        if self.how == "full" or self.how == ("left", "right")[side]:
            yield (key, number, None) if side == 0 else (key, None, number)
