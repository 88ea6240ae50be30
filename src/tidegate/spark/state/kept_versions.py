"""Which versions of the state are kept: a number of them, or those of a time.

Of a long time not every version is kept, but the first one in each of `PARTS` equal parts of it. A
part begins at the same moment whoever looks, and when, so a version that was kept stays kept until
it is too old.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.errors import AskedWrongly
from tidegate.spark.state.manifest import KEPT
from tidegate.units import parse_duration

MOST = 1000
"""More versions cannot be asked for by number."""
PARTS = 60
"""A time is divided into so many parts, with one version of each."""


@dataclass(frozen=True, slots=True)
class KeptVersions:
    """The newest versions, `count` of them, and those that are less than `for_us` older."""

    count: int = KEPT
    for_us: int | None = None

    @classmethod
    def asked(cls, versions: int | str) -> "KeptVersions":
        """As the option says it: 100, or '7 days'."""
        if isinstance(versions, str):
            try:
                seconds = parse_duration(versions)
            except AskedWrongly as error:
                raise AskedWrongly(f"versions: {error}, or a number of versions") from None
            return cls(KEPT, round(seconds * 1e6))
        if not KEPT <= versions <= MOST:
            raise AskedWrongly(
                f"versions={versions}: give {KEPT} to {MOST}, or a time such as '7 days', of which "
                f"up to {PARTS} are kept"
            )
        return cls(versions)

    @property
    def is_default(self) -> bool:
        """Whether only the newest ones are kept that a restart needs."""
        return self == KeptVersions()

    def of(self, at_us: Mapping[int, int | None]) -> set[int]:
        """The batches whose versions stay, of those with these clocks; None: not known."""
        newest = sorted(at_us)[-self.count :]
        kept = set(newest)
        if self.for_us is None or not newest:
            return kept
        now_us = max((us for us in at_us.values() if us is not None), default=0)
        part_us = max(1, self.for_us // PARTS)
        seen: set[int] = set()
        for batch in sorted(at_us):
            us = at_us[batch]
            if us is None or us < now_us - self.for_us:
                continue
            if us // part_us not in seen:
                seen.add(us // part_us)
                kept.add(batch)
        return kept
