"""What experiments found last, kept as one JSON file each, so that the list can show it.

A full result, the result of a short form and results with options are kept beside each other: a
first look must not overwrite half an hour of measurements.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

DIRECTORY = Path("out") / "papers"
_LONGEST = 180
"""File systems take names of 255 bytes; the figure and the ending need some of them."""


def place(
    paper: str,
    figure: str,
    ending: str,
    *,
    quick: bool = False,
    options: Mapping[str, str] | None = None,
) -> Path:
    """The file of an experiment: its result (`json`) or its page (`html`).

    Its name has the options in it. Where they are too long for a name, their digest is.
    """
    given = [f"{name}={quote(value, safe='')}" for name, value in sorted((options or {}).items())]
    if len(".".join(given)) > _LONGEST:
        given = [f"options-{sha256('.'.join(given).encode()).hexdigest()[:16]}"]
    parts = (f"{paper}-{figure}", *(["quick"] if quick else []), *given, ending)
    return DIRECTORY / ".".join(parts)


def keep(document: dict[str, Any]) -> None:
    """Keep the result of an experiment."""
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    file = place(
        document["paper"],
        document["figure"],
        "json",
        quick=document["quick"],
        options=document["options"],
    )
    file.write_text(json.dumps(document, indent=2, allow_nan=False), encoding="utf-8")


def last(paper: str, figure: str) -> dict[str, Any] | None:
    """The last full result of an experiment, else that of its short form, else one with options.

    None if it was never run here.
    """
    full, quick = (place(paper, figure, "json", quick=short) for short in (False, True))
    others = [file for file in DIRECTORY.glob(f"{paper}-{figure}.*.json") if file != quick]
    newest = sorted(others, key=lambda file: file.stat().st_mtime, reverse=True)
    found = (_read(file) for file in (full, quick, *newest))
    return next((one for one in found if one is not None), None)


def _read(file: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def in_short(document: dict[str, Any] | None) -> str | None:
    """The result in a few words: how many aims were met, and how it was asked for."""
    if document is None:
        return None
    aims = document.get("aims") or []
    met = sum(bool(aim.get("met")) for aim in aims)
    options = document.get("options") or {}
    return ", ".join(
        [
            f"{met} of {len(aims)} aims met" if aims else "ran",
            *(["wrong answers"] if document.get("verified") is False else []),
            *(["quick"] if document.get("quick") else []),
            *(f"{name}={value}" for name, value in options.items()),
        ]
    )
