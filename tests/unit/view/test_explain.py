"""What a run's records tell afterwards, and what is said when they do not."""

import dataclasses
import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.helpers.pipeline_worlds import controller, world
from tests.helpers.synthetic_surge import record, surge
from tests.unit.control.flow.test_bottleneck import operator
from tests.unit.control.flow.test_bottleneck import tick as flow_tick
from tidegate.cli import app
from tidegate.control.bottleneck import Bottleneck
from tidegate.control.record import VERSION, Record
from tidegate.errors import AskedWrongly, TidegateError
from tidegate.recording import CURRENT, RecordWriter, read_readable
from tidegate.sim.microbatch.pipeline import simulate
from tidegate.view.explain import explain

RUNNER = CliRunner()
SCRIPT = re.compile(r"<script[^>]*>.*?</script>", re.S)


def bottleneck(operator: str, load: float, tasks: int = 4) -> Bottleneck:
    return Bottleneck(
        operator=operator, segment="main", tasks=tasks, load=load, gain=0.2, capacity_rate=2000.0
    )


def moved(ticks: int = 30) -> list[Record]:
    """`parse` is full for ten ticks, then `per_ad` idles along; tick 5 and 15 tell nothing."""
    found = []
    for one in surge(ticks):
        where = bottleneck("parse", 0.9) if one.tick < 10 else bottleneck("per_ad", 0.5, 2)
        found.append(dataclasses.replace(one, bottleneck=None if one.tick in (5, 15) else where))
    return found


def keep(directory: Path, records: list[Record]) -> Path:
    with RecordWriter(directory) as writer:
        for one in records:
            writer.write(one)
    return directory


def flowing(text: str) -> str:
    """The text without its line breaks."""
    return " ".join(text.split())


def test_spans_follow_the_bottleneck() -> None:
    told = explain(moved())
    assert [(span.operator, span.begin_s, span.end_s) for span in told.spans] == [
        ("parse", 0.0, 10.0),
        ("per_ad", 10.0, 30.0),
    ]
    parse, per_ad = told.spans
    assert parse.limiting_s == 9.0 and per_ad.limiting_s == 0.0
    assert (parse.load, per_ad.most_tasks) == (pytest.approx(0.9), 2)
    assert told.limiting_s == 9.0
    assert told.headline == (
        "`parse` limited the pipeline for 9 s of 30 s: rows came to it at 85% or more of the rate"
        " that its tasks can process (90% at most)."
    )


def test_where_nothing_was_full_no_operator_is_said_to_limit() -> None:
    """The fullest operator is named, and that it limited nothing, in sentences that agree."""
    calm = [dataclasses.replace(one, bottleneck=bottleneck("wait", 0.42)) for one in surge(30)]
    calm[3] = dataclasses.replace(calm[3], bottleneck=bottleneck("wait", 0.71))
    assert explain(calm).headline == (
        "No operator limited the pipeline. `wait` was the fullest: rows came to it at 43% of the"
        " rate that its tasks can process, and at 71% at most. From 85% on, an operator limits the"
        " pipeline."
    )


def test_every_operator_that_limited_is_named() -> None:
    records = [
        dataclasses.replace(
            one, bottleneck=bottleneck("parse", 0.9) if one.tick < 20 else bottleneck("join", 1.3)
        )
        for one in surge(30)
    ]
    headline = explain(records).headline
    assert headline.startswith("`parse` limited the pipeline for 20 s of 30 s")
    assert headline.endswith("So did `join` for 10 s.")


def test_a_run_that_was_down_is_two_spans() -> None:
    later = [
        dataclasses.replace(
            one, measurement=dataclasses.replace(one.measurement, at_s=one.measurement.at_s + 600)
        )
        for one in moved(8)
    ]
    spans = explain([*moved(8), *later]).spans
    assert [(span.begin_s, span.end_s) for span in spans] == [(0.0, 8.0), (600.0, 608.0)]


def test_what_was_expected_stands_against_what_came() -> None:
    records = moved(40)
    records[10] = dataclasses.replace(
        records[10], decision=dataclasses.replace(records[10].decision, expected_latency_s=1.5)
    )
    told = explain(records)
    assert [round(step.at_s) for step in told.steps] == [11, 15, 21, 36]
    first, _, held, last = told.steps
    assert first.acted and first.expected_latency_s == 1.5
    # Ticks 13 and 14: the first two after the change are settling, the next change came at 14.
    assert first.after.latency_s == pytest.approx((3.0 + 1.14) / 2)
    assert "1.50 s expected, 2.07 s measured (+38%)" in first.came
    assert not held.acted and held.came == "" and "the maximum is 4" in held.outcome
    assert "before" in last.came


def fetching(records: list[Record], tick: int, durable_bytes: int) -> None:
    measurement = records[tick].measurement
    parse, per_ad = measurement.operators
    per_ad = dataclasses.replace(per_ad, durable_bytes=durable_bytes)
    records[tick] = dataclasses.replace(
        records[tick], measurement=dataclasses.replace(measurement, operators=(parse, per_ad))
    )


def test_state_that_was_fetched_belongs_to_the_change_before_it(tmp_path: Path) -> None:
    records = moved(40)
    assert explain(records).fetching == ""
    fetching(records, 0, 512)
    fetching(records, 11, 2**20)
    fetching(records, 14, 2**20)
    told = explain(records)
    first, second, _, last = told.steps
    assert (first.durable_bytes, second.durable_bytes, last.durable_bytes) == (2 * 2**20, 0, 0)
    assert "2.0 MiB of state fetched" in first.came and "fetched" not in last.came
    assert told.durable_bytes == 2 * 2**20 + 512
    page = tmp_path / "run.html"
    where = keep(tmp_path / "ck", records)
    text = flowing(RUNNER.invoke(app, ["explain", str(where), "--html", str(page)]).stdout)
    assert "Nodes fetched 2.0 MiB of state they did not have: `per_ad` 2.0 MiB." in text
    assert "Nodes fetched 2.0 MiB" in page.read_text()
    document = json.loads(RUNNER.invoke(app, ["explain", str(where), "--json"]).stdout)
    assert document["state_fetched_bytes"] == {"per_ad": 2 * 2**20 + 512}
    assert document["changes"][0]["state_fetched_bytes"] == 2 * 2**20


def test_a_simulated_surge_is_told() -> None:
    outcome = simulate(world(seconds=60.0), controller())
    told = explain(outcome.records)
    assert {span.operator for span in told.spans} == {"count"}
    grown = next(step for step in told.steps if step.acted)
    assert grown.before.load is not None and grown.after.load is not None
    assert grown.before.load > 1.0 > grown.after.load
    # Records of before there was a bottleneck in them: it is found from the measurements.
    older = [dataclasses.replace(one, bottleneck=None) for one in outcome.records]
    assert explain(older).spans == told.spans


def test_the_network_is_drawn_where_it_was_fullest(tmp_path: Path) -> None:
    """4,000 rows/s arrive at second 31, and two cores carry half of that."""
    records = list(simulate(world(seconds=60.0), controller()).records)
    (moment,) = explain(records).networks
    assert moment.at_s == pytest.approx(31.0)
    assert moment.headline.startswith("At second 31, 4,000 rows/s arrived, and the pipeline could")
    assert moment.headline.endswith("the narrowest place was before `count` (210% full).")
    where = keep(tmp_path / "ck", records)
    text = RUNNER.invoke(app, ["explain", str(where)], env={"COLUMNS": "120"}).stdout
    assert re.search(r"NARROWEST 4,000 of 1,9\d\d rows/s \(2\d\d%\) -> count 2 tasks", text)
    page = tmp_path / "run.html"
    answer = RUNNER.invoke(app, ["explain", str(where), "--json", "--html", str(page)])
    (network,) = json.loads(answer.stdout)["networks"]
    assert network["minimum_cut"]["before"] == "count" and network["minimum_cut"]["limits"]
    assert [(one["from"], one["to"], one["cut"]) for one in network["edges"]] == [
        ("source of main", "parse", False),
        ("parse", "count", True),
        ("count", "sink", False),
    ]
    for one in network["edges"]:
        assert one["capacity_rate"] is None or one["flow_rate"] <= one["capacity_rate"]
    html = page.read_text()
    assert html.count('<svg role="img"') == 1 and 'class="cut"' in html
    assert "The flow network at second 31" in html


def test_the_network_of_another_moment_can_be_asked_for(tmp_path: Path) -> None:
    records = list(simulate(world(seconds=60.0), controller()).records)
    (calm,) = explain(records, at_s=20.4).networks
    assert calm.at_s == pytest.approx(20.0) and not calm.graph.limits
    (last,) = explain(records, at_s=1e9).networks
    assert last.at_s == pytest.approx(60.0)
    where = keep(tmp_path / "ck", records)
    text = RUNNER.invoke(app, ["explain", str(where), "--at", "20"]).stdout
    assert "At second 20, 1,000 rows/s arrived" in text


def test_each_operator_that_was_the_bottleneck_has_its_network() -> None:
    """A chain whose heaviest operator changes: two cuts, in the order of time."""
    records = []
    for number, (first, second) in enumerate([(0.03, 0.001)] * 5 + [(0.001, 0.02)] * 8):
        tick = flow_tick(
            operator("parse", first, inputs=("in",)),
            operator("count", second, inputs=("parse",)),
            number=number,
        )
        stale = dataclasses.replace(tick, stale="nothing ended") if number == 2 else tick
        records.append(dataclasses.replace(record(number), measurement=stale, bottleneck=None))
    networks = explain(records).networks
    assert [one.graph.operator for one in networks] == ["parse", "count"]
    assert networks[0].at_s < networks[1].at_s
    assert explain(surge(3)).networks == ()


def test_no_record_and_no_bottleneck() -> None:
    with pytest.raises(AskedWrongly, match="at least one tick"):
        explain([])
    told = explain(surge(3))
    assert told.spans == () and "no operator was measured" in told.headline
    assert told.document()["bottlenecks"] == []


def test_the_command_prints_text_json_and_a_page(tmp_path: Path) -> None:
    where = keep(tmp_path / "ck", moved(40))
    text = RUNNER.invoke(app, ["explain", str(where)])
    assert text.exit_code == 0
    assert "`parse` limited the pipeline for 9 s" in flowing(text.stdout)
    assert "0 to 10" in text.stdout and "cores 2 to 4" in text.stdout
    page = tmp_path / "run.html"
    answer = RUNNER.invoke(app, ["explain", str(where), "--json", "--html", str(page)])
    document = json.loads(answer.stdout)
    assert [one["operator"] for one in document["bottlenecks"]] == ["parse", "per_ad"]
    assert document["operators"][0] == {
        "operator": "per_ad",
        "seconds": 30.0,
        "limiting_seconds": 0.0,
    }
    assert document["left_out"] == [] and len(document["changes"]) == 4
    html = page.read_text()
    assert "The fullest operator" in html and "per_ad" in html
    assert "&lt;b&gt;theta&lt;/b&gt;" in html
    assert "<script src" not in html and not re.search(r"(?:src|href)=", SCRIPT.sub("", html))


def test_lines_that_cannot_be_read_are_said_and_the_rest_goes_on(tmp_path: Path) -> None:
    lines = [one.to_json() for one in moved(6)]
    old = [line.replace(f'"version":{VERSION}', '"version":0', 1) for line in lines[:2]]
    content = "\n".join([*old, lines[2], "nonsense", *lines[3:5], lines[5][:-40]])
    (tmp_path / CURRENT).write_text(content)
    reading = read_readable(tmp_path)
    assert [one.tick for one in reading.records] == [2, 3, 4]
    cut, version, damaged = reading.left_out
    assert "Line 7 of" in cut and "cut off by a crash" in cut
    assert "2 lines (1 to 2)" in version and "a record of version 0" in version
    assert "Line 4 of" in damaged and "not a record" in damaged
    answer = RUNNER.invoke(app, ["explain", str(tmp_path), "--json"])
    assert answer.exit_code == 0
    assert json.loads(answer.stdout)["left_out"] == list(reading.left_out)
    assert "a record of version 0" in answer.stderr


def test_only_old_records_are_refused_in_one_sentence(tmp_path: Path) -> None:
    old = record(0).to_json().replace(f'"version":{VERSION}', '"version":0', 1)
    (tmp_path / CURRENT).write_text(old + "\n")
    with pytest.raises(TidegateError, match="the version that wrote them") as caught:
        read_readable(tmp_path)
    assert "version 0" in str(caught.value) and not isinstance(caught.value, AskedWrongly)
    (tmp_path / CURRENT).write_text("")
    with pytest.raises(AskedWrongly, match="yet"):
        read_readable(tmp_path)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "is not a checkpoint and has no records"),
        ({"pipeline.json": '{"format":1,"pipeline":"ads"}'}, "of pipeline 'ads' has no records"),
    ],
)
def test_a_directory_without_records_is_told_apart(
    tmp_path: Path, files: dict[str, str], message: str
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    answer = RUNNER.invoke(app, ["explain", str(tmp_path)])
    assert isinstance(answer.exception, AskedWrongly) and message in str(answer.exception)


def test_a_place_that_is_not_there_or_not_here(tmp_path: Path) -> None:
    gone = RUNNER.invoke(app, ["explain", str(tmp_path / "gone")])
    assert isinstance(gone.exception, AskedWrongly) and "does not exist" in str(gone.exception)
    far = RUNNER.invoke(app, ["explain", "nowhere://bucket/ck"])
    assert isinstance(far.exception, AskedWrongly) and "cannot be read" in str(far.exception)
    where = keep(tmp_path / "ck", moved(3))
    lost = RUNNER.invoke(app, ["explain", str(where), "--html", str(tmp_path / "no" / "a.html")])
    assert isinstance(lost.exception, AskedWrongly) and "does not exist" in str(lost.exception)


def test_no_line_is_wider_than_the_terminal_and_nothing_is_cut(tmp_path: Path) -> None:
    long = "normalise_and_enrich_the_orders_with_customers"
    records = []
    for one in surge(40):
        where = bottleneck(long if one.tick % 20 < 10 else "per_ad", 1.234, 128)
        at_s = one.measurement.at_s + 12_345 * (one.tick // 20)
        tick = dataclasses.replace(one.measurement, at_s=at_s)
        records.append(dataclasses.replace(one, bottleneck=where, measurement=tick))
    where = keep(tmp_path / "ck", records)
    said = RUNNER.invoke(app, ["explain", str(where)], env={"COLUMNS": "80"}).stdout
    assert max(len(line) for line in said.splitlines()) <= 80
    assert "…" not in said
    cells = "".join(re.findall(r"│ *[\d,]+ to *│ (\w+) *│", said))
    assert cells, "the table has the spans"
