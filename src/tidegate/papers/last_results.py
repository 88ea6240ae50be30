"""What experiments found last, kept as one JSON file each, so that the list can show it."""

import json
from pathlib import Path
from typing import Any

DIRECTORY = Path("out") / "papers"


def place(paper: str, figure: str, ending: str) -> Path:
    """The file of an experiment: its result (`json`) or its picture (`html`)."""
    return DIRECTORY / f"{paper}-{figure}.{ending}"


def keep(document: dict[str, Any]) -> None:
    """Keep the result of an experiment."""
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    text = json.dumps(document, indent=2, allow_nan=False)
    place(document["paper"], document["figure"], "json").write_text(text)


def last(paper: str, figure: str) -> dict[str, Any] | None:
    """The last result of an experiment; None if it was never run here."""
    try:
        found = json.loads(place(paper, figure, "json").read_text())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def in_short(document: dict[str, Any] | None) -> str | None:
    """The result in a few words: how many aims were met."""
    if document is None:
        return None
    aims = document.get("aims") or []
    met = sum(bool(aim.get("met")) for aim in aims)
    quick = ", quick" if document.get("quick") else ""
    return f"{met} of {len(aims)} aims met{quick}" if aims else f"ran{quick}"
