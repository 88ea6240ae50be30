"""`tidegate explain` on records of `attach` and `tidegate run`: queries instead of operators."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.helpers.attached_run import Imitated, attached_run
from tests.helpers.fake_query import FakeQuery
from tidegate.cli import app
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.limits import Limits
from tidegate.control.record import Record
from tidegate.control.target import Target
from tidegate.recording import RecordWriter
from tidegate.view.explain import explain

RUNNER = CliRunner()
ASSEMBLY = Assembly(target=Target(3.0), bounds=Bounds(2, 16), cores_per_executor=2)


def surging(at_s: float) -> float:
    """400 rows/s, and 3,000 from second 60 to 120."""
    return 400.0 * at_s + 2600.0 * min(max(at_s - 60.0, 0.0), 60.0)


@pytest.fixture
def records(monkeypatch: pytest.MonkeyPatch) -> list[Record]:
    """Two queries on executors of two cores, which come 6 s after they are asked for."""
    queries = [
        Imitated(FakeQuery("orders"), surging, 2e-3, state=True),
        Imitated(FakeQuery("clicks"), lambda at_s: 300.0 * at_s, 2e-4),
    ]
    return attached_run(monkeypatch, queries, ASSEMBLY, seconds=200, begins_with=4)


def keep(directory: Path, records: list[Record]) -> str:
    with RecordWriter(directory) as writer:
        for one in records:
            writer.write(one)
    return str(directory)


def test_the_slowest_query_comes_first_with_what_its_time_went_to(records: list[Record]) -> None:
    told = explain(records)
    assert told.spans == () and told.networks == ()
    assert told.headline.startswith("`orders` was the slowest of 2 queries. Rows took ")
    assert told.headline.endswith(
        "on average, from their arrival to the end of their batch, target 3 s."
    )
    orders, clicks = told.batches
    assert (orders.segment, clicks.segment) == ("orders", "clicks")
    assert orders.foreign and orders.first_batches == 3 and orders.first_s > 2.0 * orders.mean_s
    assert sum(orders.parts.values()) == pytest.approx(1.0)
    assert next(iter(orders.parts)) == "stages"
    assert orders.parts["stages"] > clicks.parts["stages"]
    assert orders.parts["planning"] == pytest.approx(0.15 / orders.mean_s, rel=0.02)
    assert orders.state == pytest.approx(0.25, rel=0.01) and clicks.state is None
    assert orders.busy is not None and clicks.busy is not None and orders.busy > 5 * clicks.busy
    assert "tasks and the sink" in orders.went_to and "wrote state in 25%" in orders.went_to
    assert "wrote state" not in clicks.went_to and "Spark's planning" in clicks.went_to


def test_executors_are_counted_as_executors(records: list[Record]) -> None:
    told = explain(records).cores
    assert told.per_executor == 2
    least, most = (cores // 2 for cores in told.asked)
    assert 1 <= least < most
    assert told.words.startswith(f"{least} to {most} executors of 2 cores were asked for, ")
    assert "new ones took 6 s to come" in told.words
    busy = told.mean_busy
    assert busy is not None and busy < told.mean_granted


def test_its_decisions_are_judged(records: list[Record]) -> None:
    found = explain(records).hindsight
    assert found.known_seconds > 190.0
    kinds = [one.fault.kind if one.fault else None for one in found.verdicts]
    cold = found.verdicts[0]
    assert cold.fault is not None and cold.fault.kind == "needless_out"
    assert "first batches ran long" in cold.fault.why
    late = next(one for one in found.verdicts if one.fault and one.fault.kind == "late_out")
    assert 60.0 < late.at_s < 70.0 and "came" in (late.fault.why if late.fault else "")
    assert "late_out" in kinds and found.enough_core_seconds < found.known_core_seconds


def test_the_command_tells_it_in_lines_that_fit_and_as_json_and_as_a_page(
    records: list[Record], tmp_path: Path
) -> None:
    where, page = keep(tmp_path / "records", records), tmp_path / "run.html"
    said = RUNNER.invoke(app, ["explain", where], env={"COLUMNS": "80"}).stdout
    assert max(len(line) for line in said.splitlines()) <= 80 and "…" not in said
    text = " ".join(said.split())
    assert "`orders` was the slowest of 2 queries" in text
    assert "executors of 2 cores were asked for" in text and "In hindsight" in text
    answer = RUNNER.invoke(app, ["explain", where, "--json", "--html", str(page)])
    document = json.loads(answer.stdout)
    assert [one["segment"] for one in document["batches"]] == ["orders", "clicks"]
    assert document["cores"]["per_executor"] == 2 and document["bottlenecks"] == []
    assert document["hindsight"]["known"] and document["hindsight"]["oracle_estimated"]
    html = page.read_text()
    assert 'id="hindsight"' in html and "Query `orders`" in html
    assert "Cores, and those that were enough" in html
    assert "The fullest operator" not in html, "nothing is known of operators"


def test_a_read_limit_is_said_with_how_often_it_was_reached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    low = Imitated(FakeQuery("orders"), lambda at_s: 1000.0 * at_s, 1e-4, limit_rows=500)
    (orders,) = explain(
        attached_run(monkeypatch, [low], ASSEMBLY, seconds=60, begins_with=4)
    ).batches
    assert orders.limit_rows == 500 and orders.limited == orders.batches
    assert orders.limit.endswith("took all of the read limit of 500 rows.")
    high = Imitated(FakeQuery("orders"), lambda at_s: 1000.0 * at_s, 1e-4, limit_rows=50_000)
    (orders,) = explain(
        attached_run(monkeypatch, [high], ASSEMBLY, seconds=60, begins_with=4)
    ).batches
    assert orders.limit == "Its read limit of 50,000 rows a batch was never reached."


def test_on_one_machine_it_says_that_nothing_was_changed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`attach` on `local[...]` is a dry run."""
    dry = Assembly(target=Target(3.0), bounds=Bounds(1, 4), limits=Limits(dry_run=True))
    one = Imitated(FakeQuery("orders"), lambda at_s: 200.0 * at_s, 1e-3)
    told = explain(attached_run(monkeypatch, [one], dry, seconds=60, begins_with=4))
    assert told.headline.startswith("Rows of `orders` took ")
    assert told.hindsight.dry_run and told.hindsight.verdicts == ()
    assert told.hindsight.most_enough <= 2 and set(told.hindsight.above) == {"dry_run"}
    where = keep(
        tmp_path / "records",
        attached_run(
            monkeypatch,
            [Imitated(FakeQuery("orders"), lambda at_s: 200.0 * at_s, 1e-3)],
            dry,
            seconds=30,
            begins_with=4,
        ),
    )
    said = " ".join(RUNNER.invoke(app, ["explain", where]).stdout.split())
    assert "This was a dry run: nothing was changed" in said


def test_queries_without_a_batch_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = Imitated(FakeQuery("orders"), lambda at_s: 0.0, 1e-3)
    told = explain(attached_run(monkeypatch, [silent], ASSEMBLY, seconds=10, begins_with=4))
    assert told.batches == () and told.headline.startswith("No bottleneck was found")
    assert told.hindsight.why_unknown is not None
