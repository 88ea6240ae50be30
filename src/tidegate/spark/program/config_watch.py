"""Watches the file of `tidegate run --config`: what changes there changes the running program.

It is looked at once a tick, in the thread that ticks. A file that is broken for a while, as while
somebody edits it, changes nothing and is reported once.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tidegate.control.record import Record
from tidegate.errors import TidegateError
from tidegate.spark.loop.settings import changeable
from tidegate.spark.options import AttachOptions, ProgramOptions, declared, filled
from tidegate.spark.program.config_file import ConfigFile, over

log = logging.getLogger("tidegate")

BOUNDS = ("cores", "executors")
"""Options that mean nothing where there are no executors to scale."""


@dataclass(frozen=True, slots=True)
class Config:
    """A file of options, and the flags that win over it."""

    file: ConfigFile
    flags: Mapping[str, Any]
    options: Mapping[str, Any]
    """What the program was started with."""


class ConfigWatch:
    """A watcher of an attachment, which it updates when the file has changed."""

    def __init__(
        self, config: Config, update: Callable[..., None], *, left_out: tuple[str, ...] = ()
    ) -> None:
        self._config = config
        self._update = update
        self._left_out = left_out
        """Options that are not changed, because this master knows nothing of them."""
        self._in_force = filled(ProgramOptions, config.options)
        self._fixed: Mapping[str, Any] = {}
        """What the file last said of options that cannot change."""
        self._looked_at: str | None = None
        """The content or the error that was dealt with last."""

    def __call__(self, record: Record) -> None:
        """Look at the file; what is new in it holds from the next tick on."""
        try:
            found = self._config.file.options()
            seen = repr(found)
        except TidegateError as error:
            found, seen = None, str(error)
        if seen == self._looked_at:
            return
        self._looked_at = seen
        if found is None:
            log.warning("%s; the settings stay as they are", seen)
        else:
            self._apply(filled(ProgramOptions, over(self._config.flags, found)))

    def _apply(self, asked: Mapping[str, Any]) -> None:
        known = changeable(AttachOptions)
        self._name_fixed(
            {name: asked[name] for name in declared(ProgramOptions) if name not in known}
        )
        changed = {name: asked[name] for name in known if asked[name] != self._in_force[name]}
        given = {name: value for name, value in changed.items() if name not in self._left_out}
        try:
            if given:
                self._update(**given)
        except TidegateError as error:
            log.warning("%s: %s; the settings stay as they are", self._config.file.path, error)
            return
        self._in_force = {**self._in_force, **changed}

    def _name_fixed(self, asked: Mapping[str, Any]) -> None:
        """Warn of options that were changed and cannot be, once for each change."""
        before, self._fixed = self._fixed, asked
        started = self._in_force
        wrong = [name for name in asked if asked[name] not in (before.get(name), started[name])]
        if wrong:
            log.warning(
                "%s in %s cannot change while the program runs and will count at its next start",
                " and ".join(wrong),
                self._config.file.path,
            )
