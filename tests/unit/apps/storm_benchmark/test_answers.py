"""Whole topologies without Spark: right however they are cut, and wrong answers are found."""

from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.apps.storm_benchmark.by_hand import Recorded, ran
from tidegate.apps.application import Application, Settings
from tidegate.apps.storm_benchmark import (
    data_clean,
    grep,
    page_view,
    rolling_count,
    unique_visitor,
)
from tidegate.apps.storm_benchmark.reference import ends_s
from tidegate.apps.storm_benchmark.topology import Answers, Topology
from tidegate.workload.parse import parse_profile

TEXT = {"words": "300"}
LOG = {"pages": "8", "users": "40"}
WINDOW = {"window_s": "4", "every_s": "2"}
EXTRA = {
    "grep": TEXT,
    "rolling-count": TEXT | WINDOW,
    "unique-visitor": LOG | WINDOW,
    "page-view": LOG,
    "data-clean": LOG,
}
MODULES = (grep, rolling_count, unique_visitor, page_view, data_clean)
TOPOLOGIES = {module.NAME: module.TOPOLOGY for module in MODULES}
APPLICATIONS = {module.NAME: module.APPLICATION for module in MODULES}
CUTS = [0, 1, 250, 600, 604, 900]

every_topology = pytest.mark.parametrize("topology", TOPOLOGIES.values(), ids=list(TOPOLOGIES))


def asked(name: str, seconds: float = 9.0) -> Settings:
    return Settings(rate=parse_profile("constant:100"), seconds=seconds, extra=EXTRA[name])


@every_topology
def test_the_answers_are_right(topology: Topology, tmp_path: Path) -> None:
    wanted = asked(topology.name)
    found = topology.check(wanted, ran(topology, wanted, tmp_path, CUTS))
    assert found.correct, found.said
    assert found.figures["lines"] == 900
    assert found.figures["answers"] >= 1
    assert "\n" not in found.said


@pytest.mark.parametrize("name", ["rolling-count", "unique-visitor"])
@given(st.lists(st.integers(1, 120), min_size=1, max_size=5), st.sampled_from([1, 2, 4]))
@settings(max_examples=15)
def test_any_cut_gives_the_same_windows(name: str, lengths: list[int], every_s: int) -> None:
    cuts = [0, *accumulate(lengths)]
    wanted = asked(name, seconds=cuts[-1] / 100)
    wanted = replace(wanted, extra={**wanted.extra, "every_s": str(every_s)})
    with TemporaryDirectory() as root:
        found = TOPOLOGIES[name].check(wanted, ran(TOPOLOGIES[name], wanted, Path(root), cuts))
    assert found.correct, found.said


@every_topology
def test_a_batch_that_is_replayed_gives_the_same_answers(
    topology: Topology, tmp_path: Path
) -> None:
    wanted = asked(topology.name)
    once = ran(topology, wanted, tmp_path / "once", CUTS)
    again = ran(topology, wanted, tmp_path / "again", CUTS, tries=2)
    for one, other in ((once.state, again.state), (once.emitted, again.emitted)):
        assert (one is None) == (other is None)
        assert one is None or one.equals(other)


def test_windows_are_emitted_and_open_ones_stay(tmp_path: Path) -> None:
    topology = TOPOLOGIES["unique-visitor"]
    answers = ran(topology, asked("unique-visitor"), tmp_path, CUTS)
    assert answers.emitted is not None and answers.state is not None
    closed = {at.timestamp() for at in answers.emitted["window_end"].to_pylist()}
    still = {at.timestamp() for at in answers.state["window_end"].to_pylist()}
    # the newest event of the batches before the last one closes windows, which is at second 6
    assert closed == {2.0, 4.0, 6.0}
    assert still == {8.0, 10.0, 12.0}
    assert list(ends_s(4, 4, 2)) == [10, 12]


def without_last(rows: pa.Table | None) -> pa.Table | None:
    return None if rows is None else rows.slice(0, rows.num_rows - 1)


def twice_first(rows: pa.Table | None) -> pa.Table | None:
    return None if rows is None else pa.concat_tables([rows, rows.slice(0, 1)])


WRONG: dict[str, Callable[[Answers], Answers]] = {
    "none": lambda answers: Answers(None, None),
    "one too few": lambda answers: replace(
        answers, state=without_last(answers.state), emitted=without_last(answers.emitted)
    ),
    "one twice": lambda answers: replace(
        answers, state=twice_first(answers.state), emitted=twice_first(answers.emitted)
    ),
}


@pytest.mark.parametrize("how", WRONG)
@every_topology
def test_wrong_answers_are_found(topology: Topology, how: str, tmp_path: Path) -> None:
    wanted = asked(topology.name)
    found = topology.check(wanted, WRONG[how](ran(topology, wanted, tmp_path, CUTS)))
    assert not found.correct
    assert "\n" not in found.said


@pytest.mark.parametrize("name", ["rolling-count", "unique-visitor"])
def test_windows_that_are_never_emitted_are_found(name: str, tmp_path: Path) -> None:
    wanted = asked(name)
    answers = ran(TOPOLOGIES[name], wanted, tmp_path, [0, CUTS[-1]])
    answers = replace(answers, emitted=None)
    assert TOPOLOGIES[name].check(wanted, answers).correct, "all came in one batch"
    assert answers.progress is not None
    progress = replace(answers.progress, before_us=6_000_000)
    found = TOPOLOGIES[name].check(wanted, replace(answers, progress=progress))
    assert not found.correct and "windows were not closed" in found.said


@every_topology
def test_lines_that_are_lost_are_found(topology: Topology, tmp_path: Path) -> None:
    wanted = asked(topology.name)
    assert not topology.check(wanted, ran(topology, wanted, tmp_path, [0, 250, 600])).correct


@pytest.mark.parametrize("name", sorted(TOPOLOGIES.keys() - {"unique-visitor"}))
def test_lines_that_come_twice_are_found(name: str, tmp_path: Path) -> None:
    """A visitor who comes twice is still one, so there is nothing to find in unique visitor."""
    wanted, cuts = asked(name), [0, 250, 600, 560, 900]
    assert not TOPOLOGIES[name].check(wanted, ran(TOPOLOGIES[name], wanted, tmp_path, cuts)).correct


@pytest.mark.parametrize("application", APPLICATIONS.values(), ids=list(APPLICATIONS))
@pytest.mark.parametrize("cut", [False, True])
def test_the_operators_are_those_that_are_told(
    application: Application, cut: bool, tmp_path: Path
) -> None:
    stream = Recorded(tmp_path)
    wanted = replace(asked(application.name), cut=cut, stretch=True)
    TOPOLOGIES[application.name].behind(stream, wanted)  # type: ignore[arg-type]
    assert stream.names == ["lines", *application.operators]
    assert list(application.stretched_s) == list(application.operators)
