"""Table 3: the paper's conclusions, beside what figures 7 to 11 came to here.

It runs nothing. It reads the last results of these figures, so they have to be run before.
"""

from collections.abc import Mapping
from typing import Any

from tidegate.benching import Aim, at_least, at_most
from tidegate.errors import AskedWrongly
from tidegate.papers.figure import Asked, Compared, Findings
from tidegate.papers.flink_er.comparison import BREAK, GAIN, MOST_BREAK_S, RIGHT
from tidegate.papers.flink_er.experiments import CAMPAIGNS, LEARNING, SENTIMENT, WORDCOUNT
from tidegate.papers.flink_er.moving_state import FETCHED, OVER_RESTART
from tidegate.papers.flink_er.setting import LEAST_GAIN
from tidegate.papers.last_results import in_short, last

APPLICATIONS = {one.figure: one.title for one in (WORDCOUNT, SENTIMENT, LEARNING, CAMPAIGNS)}
FIGURES = (*APPLICATIONS, "fig11")
_NO_SRA = (
    "Sra-Stream was not run: it chooses the machine for each task (first fit), which Spark's own"
    " scheduler does here, and the paper describes its own version of it in one sentence."
)


def table_3(asked: Asked) -> Findings:
    """Read what was found last."""
    found = {figure: last("flink-er", figure) for figure in FIGURES}
    known = {figure: one for figure, one in found.items() if one is not None}
    if not known:
        raise AskedWrongly(
            "table3 sums up the results of fig7 to fig11, and none of them was run here; run"
            " 'tidegate paper flink-er fig7' first"
        )
    for figure, one in found.items():
        asked.say(f"{figure}: {in_short(one) or 'not run here'}")
    return told(known)


def told(known: Mapping[str, Mapping[str, Any]]) -> Findings:
    """The paper's words beside the values of these results."""
    missing = [figure for figure in FIGURES if figure not in known]
    gains = _values(known, GAIN)
    breaks = _values(known, BREAK)
    return Findings(
        compared=(
            Compared("Flink, here static: advantage", "exactly once", _answers(known)),
            Compared(
                "Flink, here static: disadvantage",
                "performance bottleneck",
                _shown({at: 1.0 / value for at, value in gains.items()}, "of flow's throughput"),
            ),
            Compared("Sra-Stream: disadvantage", "performance fluctuation", "not run"),
            Compared(
                "Flink-ER, here flow: advantage",
                "accurate breaking of bottleneck",
                _shown(gains, "times static's throughput"),
            ),
            Compared(
                "Flink-ER, here flow: with lower overhead",
                "state in few large pieces",
                _moved(known.get("fig11")),
            ),
            Compared(
                "Flink-ER, here flow: disadvantage",
                "instantaneous break out (about 3 s)",
                _shown(breaks, "s"),
            ),
        ),
        aims=tuple(_aims(gains, breaks, known)),
        notes=(
            *([f"Not run here: {', '.join(missing)}."] if missing else []),
            *(f"{at}: {in_short(dict(one))}." for at, one in known.items() if one.get("quick")),
            _NO_SRA,
        ),
    )


def _aims(
    gains: Mapping[str, float], breaks: Mapping[str, float], known: Mapping[str, Mapping[str, Any]]
) -> list[Aim]:
    wrong = sum(one.get("verified") is False for one in known.values())
    return [
        at_least("smallest gain of flow", min(gains.values(), default=None), round(LEAST_GAIN, 2)),
        at_most("longest break of flow", max(breaks.values(), default=None), MOST_BREAK_S, "s"),
        at_most(RIGHT, wrong, 0),
    ]


def _values(known: Mapping[str, Mapping[str, Any]], aim: str) -> dict[str, float]:
    """The values of one aim by application, where it was measured."""
    found = {figure: _value(one, aim) for figure, one in known.items() if figure in APPLICATIONS}
    return {APPLICATIONS[at]: value for at, value in found.items() if value is not None}


def _value(document: Mapping[str, Any] | None, aim: str) -> float | None:
    for one in (document or {}).get("aims", ()):
        if one["name"] == aim and one["value"] is not None:
            return float(one["value"])
    return None


def _answers(known: Mapping[str, Mapping[str, Any]]) -> str:
    right = sum(bool(one.get("verified")) for one in known.values())
    return f"answers right in {right} of {len(known)} figures"


def _shown(values: Mapping[str, float], unit: str) -> str:
    return "; ".join(f"{name} {value:.2f} {unit}" for name, value in values.items()) or "not run"


def _moved(document: Mapping[str, Any] | None) -> str:
    fetched, over = _value(document, FETCHED), _value(document, OVER_RESTART)
    if fetched is None or over is None:
        return "not run"
    return f"a rescale fetches {fetched:.0%} of what a restart does; its break is {over:.0%} of it"
