"""The settings of a control loop, which may change while it runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tidegate.control.assembly import Assembly
from tidegate.errors import AskedWrongly, nearest
from tidegate.spark.notices.receivers import NotifySettings, notify_settings
from tidegate.spark.options import CHANGEABLE, Kind, declared, filled


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """The options of a loop, and the assembly that they were checked to make."""

    kind: Kind
    given: Mapping[str, Any]
    """All options of the call, filled in."""
    assembled: Callable[[Mapping[str, Any]], Assembly]
    """The checks of the start: options in, assembly out, or the reason why they are refused."""
    assembly: Assembly
    notify: NotifySettings
    """Who gets notices, checked as well."""

    @classmethod
    def of(
        cls,
        kind: Kind,
        given: Mapping[str, Any],
        assembled: Callable[[Mapping[str, Any]], Assembly],
    ) -> "LoopSettings":
        """The settings for these options, checked."""
        notify = notify_settings(given)
        return cls(kind, given, assembled, assembled(given), notify)

    def changed(self, options: Mapping[str, Any]) -> "LoopSettings":
        """The settings with some options changed, checked as at the start."""
        given = merged(self.kind, self.given, options)
        return LoopSettings.of(self.kind, given, self.assembled)


def changeable(kind: Kind) -> list[str]:
    """The options of a call that can change while it runs."""
    return [name for name in declared(kind) if name in CHANGEABLE]


def merged(kind: Kind, given: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """What was given at the start, with the options that change.

    `cores` and `executors` replace each other. An option that cannot change is refused by name.
    """
    known = declared(kind)
    for name in options:
        if name not in known:
            raise AskedWrongly(f"there is no option '{name}'{nearest(name, known)}")
        if name not in CHANGEABLE:
            raise AskedWrongly(
                f"{name} cannot change while it runs; stop and start again for that, or change one"
                f" of {', '.join(changeable(kind))}"
            )
    if "target" in options and options["target"] is None:
        raise AskedWrongly("target=None: control needs a target; stop it if you want none")
    filled(kind, options)
    replaced = {"cores": "executors", "executors": "cores"}
    dropped = {other: None for name, other in replaced.items() if options.get(name) is not None}
    return {**given, **dropped, **options}
