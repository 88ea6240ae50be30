"""The bottleneck is the operator that a task helps most, whichever policy runs."""

import dataclasses
import io

import pytest
from rich.console import Console

from tests.helpers.pipeline_worlds import BOUNDS, MEASURED, TARGET_S, controller, measured, world
from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bottleneck import Bottleneck
from tidegate.control.flow.bottleneck import BottleneckFinder
from tidegate.control.measurement import Measurement, OperatorMeasurement
from tidegate.control.names import PIPELINE_POLICIES
from tidegate.control.record import Record
from tidegate.control.target import Target
from tidegate.sim.microbatch.pipeline import simulate
from tidegate.view.live.terminal import LiveView
from tidegate.workload.profile import steps


def operator(name: str, cost_s: float, *, tasks: int = 4, **changes: object) -> OperatorMeasurement:
    settings = {"rows": 100, "arrival_rate": 100.0, "segment": "main", **changes}
    return OperatorMeasurement(name=name, service_rate=1.0 / cost_s, tasks=tasks, **settings)


def tick(*operators: OperatorMeasurement, rate: float = 100.0, number: int = 1) -> Measurement:
    """One batch of 100 rows in every segment."""
    base = measured(number, rate=rate, rows=100)
    names = dict.fromkeys(one.segment for one in operators)
    segments = tuple(dataclasses.replace(base.segments[0], name=name) for name in names)
    return dataclasses.replace(base, operators=operators, segments=segments)


def named(*operators: OperatorMeasurement, rate: float = 100.0) -> Bottleneck:
    found = BottleneckFinder().find(tick(*operators, rate=rate))
    assert found is not None
    return found


def test_the_sentence() -> None:
    """Two stages of one batch take turns: 0.002 + 0.034 core seconds a row on 4 tasks."""
    found = named(operator("parse", 0.002), operator("match", 0.034), rate=107.0)
    assert found.words == (
        "`match` limits the pipeline: rows come at 96 % of the rate that its 4 tasks can process;"
        " with one more task the pipeline could process 23 % more"
    )
    assert found.capacity_rate == pytest.approx(4 / 0.036)
    calm = named(operator("parse", 0.002), operator("match", 0.034), rate=50.0)
    assert calm.words.startswith(
        "`match` would be the first to limit the pipeline: rows come at 45 %"
    )
    full = named(operator("match", 0.05, tasks=1, most_tasks=1))
    assert full.words == (
        "`match` limits the pipeline: rows come at 500 % of the rate that its task can process;"
        " with one more task the pipeline could process 100 % more, but it may have no more"
    )


def test_rows_per_row_count() -> None:
    """An operator with a tenth of the rows is not the bottleneck for being five times slower."""
    few = operator("report", 0.05, rows=10, arrival_rate=10.0)
    assert named(operator("parse", 0.01), few).operator == "parse"
    many = operator("words", 0.005, rows=1000, arrival_rate=1000.0)
    assert named(operator("parse", 0.01), many).operator == "words"


def test_an_uneven_operator_carries_less() -> None:
    skewed = operator("count", 0.01, imbalance=3.0)
    assert named(operator("parse", 0.02), skewed).operator == "count"


def test_segments_run_side_by_side() -> None:
    """The next segment bounds the gain, and is named beside when it limits too."""
    found = named(
        operator("parse", 0.036),
        operator("store", 0.035, segment="second"),
        operator("audit", 0.001, segment="third"),
        rate=100.0,
    )
    assert found.operator == "parse"
    assert found.load == pytest.approx(0.9)
    assert found.gain == pytest.approx(0.9 / 0.875 - 1.0)
    assert found.beside == ("store",)


def test_a_bottleneck_that_moves_is_named_with_the_next_batches() -> None:
    finder = BottleneckFinder()
    for slow in ("parse", "match", "count", "parse"):
        for number in range(3):
            costs = {name: 0.02 if name == slow else 0.002 for name in ("parse", "match", "count")}
            found = finder.find(
                tick(*(operator(name, cost) for name, cost in costs.items()), number=number)
            )
        assert found is not None and found.operator == slow


def test_a_tick_without_a_batch_keeps_what_is_known_and_nothing_is_made_up() -> None:
    finder = BottleneckFinder()
    idle = [operator(name, 1e9, rows=0) for name in ("parse", "match")]
    assert finder.find(tick(*idle)) is None
    assert finder.find(tick(operator("parse", 0.01), idle[1])) is None
    assert finder.find(tick(operator("parse", 0.01), operator("match", 0.03))) is not None
    quiet = finder.find(tick(*idle))
    assert quiet is not None and quiet.operator == "match"
    assert finder.find(tick(*idle, rate=0.0)) is None
    assert finder.find(dataclasses.replace(tick(*idle), operators=())) is None


@pytest.mark.parametrize("terminal", [True, False])
def test_the_live_view_shows_it(terminal: bool) -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=160, height=60, _environ={})
    base = controller().tick(tick(operator("parse", 0.002), operator("match", 0.034), rate=107.0))
    with LiveView(console, 2.0, "ads") as view:
        view.show(base)
    shown = " ".join(file.getvalue().split())
    assert "match limits: rows come at 96 % of what its 4 tasks can process" in shown


def test_a_record_has_it_and_an_older_one_is_read_without() -> None:
    record = controller().tick(tick(operator("parse", 0.01), operator("match", 0.03)))
    assert record.bottleneck is not None and record.bottleneck.operator == "match"
    assert Record.from_json(record.to_json()) == record
    older = dataclasses.replace(record, bottleneck=None).to_json()
    assert ',"bottleneck":null' in older
    assert Record.from_json(older.replace(',"bottleneck":null', "")).bottleneck is None


@pytest.mark.parametrize("name", PIPELINE_POLICIES)
def test_every_policys_records_name_it(name: str) -> None:
    outcome = simulate(
        world(steps([(0, 1000.0), (8, 3000.0)]), seconds=16.0),
        new_controller(
            Assembly(target=Target(TARGET_S), bounds=BOUNDS, policy=name, capacity=MEASURED)
        ),
    )
    judged = 0
    for record in outcome.records[2:]:
        found, stages = record.bottleneck, record.measurement.operators
        assert found is not None
        # 0.2 and 0.8 ms a row: which task helps more depends on the tasks that there are.
        parse, count = (one.tasks for one in stages)
        imbalance = stages[1].imbalance
        saved = {
            "parse": 0.2 / (parse * (parse + 1)),
            "count": 0.8 * imbalance / (count * (count + 1)),
        }
        if max(saved.values()) > 1.5 * min(saved.values()):
            judged += 1
            assert found.operator == max(saved, key=saved.__getitem__)
    assert judged >= 4, "most ticks have one operator that a task helps clearly more"
    if name in ("latency", "flow"):
        change = next(r for r in outcome.records if r.acted and r.decision.cores)
        assert "`count` limits the pipeline: " in change.decision.reason


def test_a_segment_measurement_that_is_missing_is_no_obstacle() -> None:
    bare = dataclasses.replace(tick(operator("parse", 0.01), operator("match", 0.03)), segments=())
    found = BottleneckFinder().find(bare)
    assert found is not None and found.operator == "match"
