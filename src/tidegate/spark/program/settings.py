"""What a program is run with, checked in full before the program or Spark starts."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.errors import AskedWrongly
from tidegate.spark.loop.assembly import assembly_within, refuse_both, span_of
from tidegate.spark.master import parse_master
from tidegate.spark.notices.receivers import notify_settings
from tidegate.spark.options import AttachOptions, ProgramOptions, declared, filled
from tidegate.spark.program.config_watch import Config
from tidegate.spark.state.files import Durable
from tidegate.spark.state.location import location_of, refuse_credentials

RECORDS = "out/run"
"""Where records go by default, in a directory with the name of the script."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramSettings:
    """A program, how it is started, and how its queries are controlled."""

    script: Path
    arguments: tuple[str, ...]
    attach: Mapping[str, Any]
    """The options for `attach`, all filled in."""
    master: str | None
    """The master of a program that sets none."""
    conf: Mapping[str, str]
    """Spark settings that the program leaves open."""
    kafka: bool | None
    """Whether the session gets Kafka's connector; None: when the program asks for Kafka."""
    quiet: bool
    config: Config | None = None
    """The file of options that is watched while the program runs."""

    @property
    def records(self) -> str:
        """The directory of the records."""
        return str(self.attach["records"])


def settle(
    script: Path,
    arguments: tuple[str, ...],
    given: Mapping[str, Any],
    config: Config | None = None,
) -> ProgramSettings:
    """The settings for these options, or the first reason why they are refused."""
    if not script.is_file():
        what = "is a directory" if script.is_dir() else "does not exist"
        raise AskedWrongly(f"{script} {what}; give the path of a PySpark program in Python")
    if not os.access(script, os.R_OK):
        raise AskedWrongly(f"{script} cannot be read; make it readable for this user")
    options = filled(ProgramOptions, given)
    if options["target"] is None:
        raise AskedWrongly(
            'run needs a target: give --target 5s, or target = "5s" in the file of --config'
        )
    refuse_credentials(str(options["records"] or ""), "records: the path")
    # The whole path, because the program may change its working directory.
    options["records"] = location_of(options["records"] or f"{RECORDS}/{script.stem}")
    attach = {name: options[name] for name in declared(AttachOptions) if name in options}
    trial_assembly(attach)
    notify_settings(attach)
    if options["master"] is not None:
        parse_master(options["master"])
    return ProgramSettings(
        script=script,
        arguments=arguments,
        attach=attach,
        master=options["master"],
        conf=dict(map(_setting, options["conf"])),
        kafka=options["kafka"],
        quiet=options["quiet"],
        config=config,
    )


def require_records(records: str) -> None:
    """Refuse a directory that cannot be written to, before a program runs without any record."""
    place = Durable(records)
    if not place.local:
        return
    directory = Path(place.path(""))
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AskedWrongly(
            f"records cannot be written to {directory} ({error.strerror}); give another directory"
            " with --records"
        ) from None


def trial_assembly(attach: Mapping[str, Any]) -> Assembly:
    """The assembly of these options before there is a session, whose master may set the bounds.

    It refuses all that can be refused without a session: durations, periods, bounds.
    """
    refuse_both(attach["cores"], attach["executors"])
    bounds = (span_of(name, attach[name]) for name in ("cores", "executors") if attach[name])
    return assembly_within(Bounds(*next(bounds, (1, 1))), attach)


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip().startswith("spark."):
        raise AskedWrongly(
            f"--conf {text}: write KEY=VALUE with a Spark setting, such as"
            " spark.sql.shuffle.partitions=8"
        )
    if key.strip() == "spark.master":
        raise AskedWrongly(f"--conf {text}: give the master with --master")
    return key.strip(), value.strip()
