"""Why a tick had more cores than enough: its cores above that, divided among the causes.

The cores are seen as layers, from enough upward: the minimum that was given, then what the plan of
the tick wanted beyond enough, then what was kept although the plan needed less, then what was no
longer asked for. Every core above enough is in one layer, so the layers add up.
"""

from tidegate.control.names import DEFAULT_POLICY
from tidegate.view.hindsight.past_tick import PastTick


def layers(tick: PastTick) -> dict[str, int]:
    """Cores above enough by cause (`causes.ABOVE`); empty where the need is not known."""
    if tick.need is None:
        return {}
    pile = _Pile(tick.need.enough, tick.granted)
    least, by_schedule = tick.settings.least(tick.record)
    pile.up_to("minimum", min(least, tick.settings.whole(tick.settings.bounds.least)))
    pile.up_to("floors" if by_schedule else "minimum", least)
    beliefs = tick.record.beliefs
    if tick.settings.dry_run:
        pile.up_to("dry_run", tick.asked)
    elif tick.catching_up:
        pile.up_to("backlog", tick.asked)
    elif "needed_cores" in beliefs:
        needed = tick.settings.whole(round(beliefs["needed_cores"]))
        believed, planned = tick.need.believed, tick.need.planned
        pile.up_to("cost", min(believed or 0, needed))
        pile.up_to("forecast", min(planned or 0, needed))
        pile.up_to("reserve", min(needed, tick.asked))
        pile.up_to(tick.held_back or "waiting", tick.asked)
    else:
        usual = tick.record.policy == DEFAULT_POLICY  # it tells its needs once it knows them
        pile.up_to(tick.held_back or ("learning" if usual else "policy"), tick.asked)
    pile.up_to("releasing", tick.granted)
    return pile.found


class _Pile:
    """Cores from a level upward, given to one cause after the other."""

    def __init__(self, level: int, top: int) -> None:
        self._level, self._top = level, top
        self.found: dict[str, int] = {}

    def up_to(self, cause: str, cores: int) -> None:
        """Give a cause the cores up to this number, as far as they are there and not given yet."""
        reached = min(cores, self._top)
        if reached > self._level:
            self.found[cause] = self.found.get(cause, 0) + reached - self._level
            self._level = reached
