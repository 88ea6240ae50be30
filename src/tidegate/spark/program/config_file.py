"""The options of `tidegate run` from a TOML file, for those who do not want to type them.

Reading is apart from starting: the same call gives the options again when the file has changed.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidegate.errors import AskedWrongly, nearest
from tidegate.spark.options import ProgramOptions, declared, filled
from tidegate.spark.program.option_text import option_value


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A file of options. It is read whenever it is asked, and never kept open."""

    path: Path

    def options(self) -> dict[str, Any]:
        """The options that the file has now, checked one by one; those that it leaves out, too."""
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise AskedWrongly(
                f"there is no file '{self.path}'; give --config a TOML file with options such as"
                ' target = "5s"'
            ) from None
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise AskedWrongly(
                f"'{self.path}' cannot be read: {reason}; give a TOML file"
            ) from None
        return parse_options(text, str(self.path))


def parse_options(text: str, source: str) -> dict[str, Any]:
    """The options in a TOML text; `source` names it in an error."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise AskedWrongly(f"{source} is not valid TOML: {error}; correct it there") from None
    known = declared(ProgramOptions)
    for name in document:
        if name not in known:
            raise AskedWrongly(f"{source}: there is no option '{name}'{nearest(name, known)}")
    try:
        given = {name: option_value(known[name], value) for name, value in document.items()}
        filled(ProgramOptions, given)
    except AskedWrongly as error:
        raise AskedWrongly(f"{source}: {error}") from None
    return given


def over(flags: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked in all: flags win over the file. None means that a flag was not given.

    `cores` and `executors` set the same bounds, so a flag for one of them replaces the other, too.
    """
    given = {name: value for name, value in flags.items() if value is not None}
    bounds = {"cores", "executors"}
    replaced = bounds if bounds & set(given) else set()
    return {**{name: config[name] for name in config if name not in replaced}, **given}
