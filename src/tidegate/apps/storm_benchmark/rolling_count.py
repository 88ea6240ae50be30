"""Rolling count: how often each word of a text occurs in a window that moves on slot by slot.

Intel's benchmark emits by the clock of the machine. Here windows follow the event time of the
lines, so a micro-batch that is replayed emits the same counts.
"""

from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.apps.application import Settings, Verdict
from tidegate.apps.option_values import options_of
from tidegate.apps.storm_benchmark.options import ROLLING_COUNT_MEANINGS, RollingCountOptions
from tidegate.apps.storm_benchmark.reference import rolling_words
from tidegate.apps.storm_benchmark.sentences import Sentences
from tidegate.apps.storm_benchmark.topology import (
    Answers,
    Lines,
    Topology,
    arrived,
    keyed,
    mapped,
)
from tidegate.apps.storm_benchmark.verdict import compared, not_closed, windows
from tidegate.pipelines.derived import Derived
from tidegate.pipelines.functions import count, window
from tidegate.pipelines.functions.columns import whole
from tidegate.pipelines.stream import Stream

NAME = "rolling-count"
STRETCHED_S = {"split": 600e-6, "rolling_count": 95e-6}
rolling_count_options = partial(options_of, RollingCountOptions, NAME)


def split(rows: pa.Table) -> Derived:
    """A map from lines to their words, each with the event time of its line."""
    lists = pc.split_pattern(whole(rows["line"], pa.string()), " ")
    lines = pc.list_parent_indices(lists)
    words = pa.table({"word": lists.flatten(), "at": rows["at"].take(lines)})
    return Derived(words, lines.to_numpy().astype(np.int64))


def _lines(settings: Settings) -> Lines:
    return Sentences(settings.seed, rolling_count_options(settings.extra).words).lines


def _operators(lines: Stream, settings: Settings) -> Stream:
    row_s = settings.times(STRETCHED_S)
    options = rolling_count_options(settings.extra)
    words = mapped(lines, "split", split, "word string, at timestamp", row_s["split"])
    if settings.cut:
        words = words.cut("words")
    every, size = f"{options.every_s} seconds", f"{options.window_s} seconds"
    rolling = window(count(), every=every, size=size, event_time="at")
    return keyed(words, "rolling_count", rolling, "word", row_s["rolling_count"])


def _check(settings: Settings, answers: Answers) -> Verdict:
    lines, options = _lines(settings), rolling_count_options(settings.extra)
    expected = rolling_words(arrived(lines, settings), options.window_s, options.every_s)
    found = windows(answers, "word", "count", lambda state: state["count"])
    faults = not_closed(answers, expected, every_s=options.every_s, size_s=options.window_s)
    return compared(found, expected, "windows of words", lines, settings, faults)


TOPOLOGY = Topology(
    name=NAME,
    stretched_s=STRETCHED_S,
    lines=_lines,
    operators=_operators,
    check=_check,
    keyed="rolling_count",
    emits=True,
)
APPLICATION = TOPOLOGY.application(
    about="how often each word occurs in a moving window",
    rate="sine:1000+-700/40",
    options=ROLLING_COUNT_MEANINGS,
    read_options=rolling_count_options,
)
