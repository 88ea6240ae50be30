"""Page view: how often each page was viewed since the start."""

from functools import partial

from tidegate.apps.application import Settings, Verdict
from tidegate.apps.option_values import options_of
from tidegate.apps.storm_benchmark.access_log import AccessLog
from tidegate.apps.storm_benchmark.options import LOG_MEANINGS, LogOptions
from tidegate.apps.storm_benchmark.reference import page_views
from tidegate.apps.storm_benchmark.topology import (
    Answers,
    Lines,
    Topology,
    arrived,
    keyed,
    mapped,
)
from tidegate.apps.storm_benchmark.verdict import compared, counted
from tidegate.apps.storm_benchmark.view import view, view_schema
from tidegate.pipelines.functions import count
from tidegate.pipelines.stream import Stream

NAME = "page-view"
STRETCHED_S = {"view": 130e-6, "count": 20e-6}
page_view_options = partial(options_of, LogOptions, NAME)


def _lines(settings: Settings) -> Lines:
    options = page_view_options(settings.extra)
    return AccessLog(settings.seed, options.pages, options.users).lines


def _operators(lines: Stream, settings: Settings) -> Stream:
    row_s = settings.times(STRETCHED_S)
    views = mapped(lines, "view", view("url"), view_schema("url"), row_s["view"])
    if settings.cut:
        views = views.cut("views")
    return keyed(views, "count", count(), "url", row_s["count"])


def _check(settings: Settings, answers: Answers) -> Verdict:
    lines = _lines(settings)
    expected = page_views(arrived(lines, settings))
    return compared(counted(answers.state, "url"), expected, "counts of pages", lines, settings)


TOPOLOGY = Topology(
    name=NAME,
    stretched_s=STRETCHED_S,
    lines=_lines,
    operators=_operators,
    check=_check,
    keyed="count",
    emits=False,
)
APPLICATION = TOPOLOGY.application(
    about="how often each page of a log was viewed",
    rate="sine:8000+-6000/40",
    options=LOG_MEANINGS,
    read_options=page_view_options,
)
