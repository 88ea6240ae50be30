"""TwitterSentiment as an application (Flink-ER 4.2). VADER is imported when it is built."""

from pathlib import Path

from tidegate.apps.application import Application, Settings
from tidegate.apps.numbered import NumberedFlow, behind, on_arrivals
from tidegate.apps.sentiment.options import MEANINGS, sentiment_options
from tidegate.pipelines.stream import Stream

NAME, SCORE, MOOD = "sentiment", "score", "mood"
TASKS = (1, 24)
STRETCHED_S = {SCORE: 0.008, MOOD: 0.002}
"""Modelled, as the paper prints none: per tweet."""


def flow(source: Stream, settings: Settings, directory: Path) -> NumberedFlow:
    """The operators behind a source of numbered rows."""
    from tidegate.apps.sentiment.flow import sentiment_flow

    return sentiment_flow(source, settings, directory)


APPLICATION = Application(
    name=NAME,
    paper="Flink-ER 4.2",
    about="the mood of each user, from the sentiment of their tweets in JSON",
    rate="ramp:75-600/60",
    target="3 seconds",
    cores=(2, 12),
    operators=(SCORE, MOOD),
    stretched_s=STRETCHED_S,
    most_tasks=lambda _: dict.fromkeys((SCORE, MOOD), TASKS[1]),
    build=on_arrivals(NAME, flow),
    behind=behind(flow),
    needs=("vaderSentiment",),
    options=MEANINGS,
    read_options=sentiment_options,
)
