"""Data clean: keeps the views of pages that were found, and of each of them the page and the user.

Intel's benchmark groups the lines by their status before it filters them, so that one task gets
95 % of them. A filter has no state, so here its lines go to any task.
"""

from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.apps.application import Settings, Verdict
from tidegate.apps.option_values import options_of
from tidegate.apps.storm_benchmark.access_log import FOUND, AccessLog
from tidegate.apps.storm_benchmark.options import LOG_MEANINGS, LogOptions
from tidegate.apps.storm_benchmark.reference import clean_views
from tidegate.apps.storm_benchmark.topology import Answers, Lines, Topology, arrived, mapped
from tidegate.apps.storm_benchmark.verdict import compared
from tidegate.apps.storm_benchmark.view import view, view_schema
from tidegate.pipelines.derived import Derived
from tidegate.pipelines.stream import Stream

NAME = "data-clean"
STRETCHED_S = {"view": 690e-6, "filter": 690e-6}
VIEWED = ("seq", "url", "status", "zip", "user")
KEPT = ("seq", "url", "user")
data_clean_options = partial(options_of, LogOptions, NAME)


def clean(rows: pa.Table) -> Derived:
    """A map that keeps what was found."""
    found = pc.equal(rows["status"], FOUND)
    return Derived(rows.select(KEPT).filter(found), found)


def _lines(settings: Settings) -> Lines:
    options = data_clean_options(settings.extra)
    return AccessLog(settings.seed, options.pages, options.users).lines


def _operators(lines: Stream, settings: Settings) -> Stream:
    row_s = settings.times(STRETCHED_S)
    views = mapped(lines, "view", view(*VIEWED), view_schema(*VIEWED), row_s["view"])
    if settings.cut:
        views = views.cut("views")
    return mapped(views, "filter", clean, view_schema(*KEPT), row_s["filter"])


def _check(settings: Settings, answers: Answers) -> Verdict:
    lines = _lines(settings)
    expected = clean_views(arrived(lines, settings))
    return compared(_kept(answers.emitted), expected, "clean lines", lines, settings)


def _kept(rows: pa.Table | None) -> list[tuple[int, tuple[str, int]]]:
    """Page and user of each line, by its number."""
    if rows is None:
        return []
    seq, url, user = (rows[name].to_pylist() for name in KEPT)
    return list(zip(seq, zip(url, user, strict=True), strict=True))


TOPOLOGY = Topology(
    name=NAME,
    stretched_s=STRETCHED_S,
    lines=_lines,
    operators=_operators,
    check=_check,
    keyed=None,
    emits=True,
)
APPLICATION = TOPOLOGY.application(
    about="which lines of a log are views of pages that were found",
    rate="sine:1500+-1000/40",
    options=LOG_MEANINGS,
    read_options=data_clean_options,
)
