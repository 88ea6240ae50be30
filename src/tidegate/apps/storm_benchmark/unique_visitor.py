"""Unique visitor: how many different users see each page in a window that moves on slot by slot."""

from functools import partial

import pyarrow.compute as pc

from tidegate.apps.application import Settings, Verdict
from tidegate.apps.option_values import options_of
from tidegate.apps.storm_benchmark.access_log import AccessLog
from tidegate.apps.storm_benchmark.distinct import Distinct
from tidegate.apps.storm_benchmark.options import VISITOR_MEANINGS, VisitorOptions
from tidegate.apps.storm_benchmark.reference import rolling_visitors
from tidegate.apps.storm_benchmark.topology import (
    Answers,
    Lines,
    Topology,
    arrived,
    keyed,
    mapped,
)
from tidegate.apps.storm_benchmark.verdict import compared, not_closed, windows
from tidegate.apps.storm_benchmark.view import view, view_schema
from tidegate.pipelines.functions import window
from tidegate.pipelines.stream import Stream

NAME = "unique-visitor"
STRETCHED_S = {"view": 110e-6, "uniquer": 27e-6}
COLUMNS = ("url", "user", "at")
visitor_options = partial(options_of, VisitorOptions, NAME)


def _lines(settings: Settings) -> Lines:
    options = visitor_options(settings.extra)
    return AccessLog(settings.seed, options.pages, options.users).lines


def _operators(lines: Stream, settings: Settings) -> Stream:
    row_s = settings.times(STRETCHED_S)
    options = visitor_options(settings.extra)
    views = mapped(lines, "view", view(*COLUMNS), view_schema(*COLUMNS), row_s["view"])
    if settings.cut:
        views = views.cut("views")
    every, size = f"{options.every_s} seconds", f"{options.window_s} seconds"
    unique = window(Distinct("user", "visitors"), every=every, size=size, event_time="at")
    return keyed(views, "uniquer", unique, "url", row_s["uniquer"])


def _check(settings: Settings, answers: Answers) -> Verdict:
    lines, options = _lines(settings), visitor_options(settings.extra)
    expected = rolling_visitors(arrived(lines, settings), options.window_s, options.every_s)
    found = windows(
        answers, "url", "visitors", lambda state: pc.list_value_length(state["visitors__values"])
    )
    faults = not_closed(answers, expected, every_s=options.every_s, size_s=options.window_s)
    return compared(found, expected, "windows of pages", lines, settings, faults)


TOPOLOGY = Topology(
    name=NAME,
    stretched_s=STRETCHED_S,
    lines=_lines,
    operators=_operators,
    check=_check,
    keyed="uniquer",
    emits=True,
)
APPLICATION = TOPOLOGY.application(
    about="how many different users see each page in a moving window",
    rate="sine:8000+-6000/40",
    options=VISITOR_MEANINGS,
    read_options=visitor_options,
)
