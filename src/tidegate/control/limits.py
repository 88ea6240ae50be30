"""Limits on when changes may be made, whatever the policy decides."""

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.control.floors import Floor
from tidegate.control.periods import Period
from tidegate.errors import AskedWrongly


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The controller holds back a decision that breaks one of these limits."""

    t_ra_s: float = 0.0
    """T_ra: at least this long between two changes of cores or tasks (DRS IV-B)."""
    first_after_s: float = 0.0
    """This long after the first tick before the first change: until then measurements settle."""
    scale_out_cooldown_s: float = 0.0
    """After any change, this long before a scale-out."""
    scale_in_cooldown_s: float = 0.0
    """After any change, this long before a scale-in."""
    dry_run: bool = False
    """Decide and record, but act on nothing."""
    excluded: tuple[Period, ...] = ()
    """Periods in which nothing changes."""
    floors: tuple[Floor, ...] = ()
    """Periods with a minimum of cores of their own."""
    emergencies: bool = False
    """Whether a saturated pipeline may be scaled out even in an excluded period."""

    def __post_init__(self) -> None:
        waits = (self.t_ra_s, self.first_after_s)
        if min(*waits, self.scale_out_cooldown_s, self.scale_in_cooldown_s) < 0.0:
            raise AskedWrongly("T_ra and cooldowns are durations; give 0 seconds or more")


def excluded_periods(texts: Sequence[str]) -> tuple[Period, ...]:
    """Periods as a person writes them: `mon-fri 09:00-10:00 Europe/Berlin`."""
    return tuple(Period.parse(text) for text in texts)
