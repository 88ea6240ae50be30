"""The exposition: it parses, says what the records say, and has all that dashboards ask for."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as plain_text

from tests.helpers.places import ROOT
from tests.helpers.synthetic_surge import REASONS, surge
from tidegate.control.control_failure import ControlFailure
from tidegate.control.lag import Lag, PartitionLag
from tidegate.control.measurement import SegmentMeasurement
from tidegate.control.notice import KINDS, Notice
from tidegate.control.record import Record
from tidegate.control.row_counts import ClassCount, SourceCount
from tidegate.view.live.metrics import Exposition, Watched
from tidegate.view.live.totals import RunTotals

OPENMETRICS = "application/openmetrics-text; version=1.0.0"
Values = dict[tuple[str, frozenset[tuple[str, str]]], float]


def full(record: Record) -> Record:
    """A record with everything that a measurement can tell."""
    lag = Lag(
        partitions=tuple(
            PartitionLag(topic="clicks", partition=number, behind_rows=10 * number)
            for number in range(3)
        ),
        seconds=0.5,
    )
    counts = SourceCount(
        name="source",
        offered=100,
        kept=90,
        classes=(ClassCount(name='a "b"\\\n', offered=60, kept=55),),
    )
    segment = SegmentMeasurement(name="main", arrival_rate=1.0, backlog_rows=0.0, tasks=1, lag=lag)
    tick = replace(record.measurement, segments=(segment,), sources=(counts,), keep=0.9)
    return replace(record, measurement=tick, beliefs={"forecast_rate": 2100.0})


def watched(records: Sequence[Record], name: str = "clicks", failures: int = 0) -> Watched:
    totals = RunTotals()
    for record in records:
        totals.add(record)
    for number in range(failures):
        totals.failed(ControlFailure(0.0, number + 1, "no answer"))
    return Watched(name, records[-1], totals, 8, not failures)


def values(text: str, parse=plain_text) -> Values:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in parse(text)
        for sample in family.samples
    }


def exposed(*pipelines: Watched, accept: str = "") -> str:
    return Exposition(lambda: pipelines).text(accept)[0].decode()


def value(found: Values, name: str, **labels: str) -> float | None:
    return found.get((name, frozenset({"pipeline": "clicks", **labels}.items())))


FULL = [full(record) for record in surge()]


@pytest.mark.parametrize(("accept", "parse"), [("", plain_text), (OPENMETRICS, openmetrics)])
def test_both_formats_parse_and_say_the_same(accept: str, parse) -> None:
    found = values(exposed(watched(FULL, failures=2), accept=accept), parse)
    tick = FULL[-1].measurement
    assert tick.latency is not None
    assert value(found, "tidegate_latency_seconds", quantile="0.95") == tick.latency.p95_s
    assert value(found, "tidegate_target_seconds") == 2.0
    assert value(found, "tidegate_cores", state="wanted") == tick.cores_asked
    assert value(found, "tidegate_cores", state="busy") == tick.cores_busy
    assert value(found, "tidegate_cores_most") == 8
    assert value(found, "tidegate_forecast_rows_per_second") == 2100.0
    assert value(found, "tidegate_tasks", operator="per_ad") == 2
    assert value(found, "tidegate_state_bytes", operator="per_ad") == 3 * 2**20
    lag = {"query": "main", "topic": "clicks", "partition": "2"}
    assert value(found, "tidegate_lag_rows", **lag) == 20
    assert value(found, "tidegate_lag_seconds") == 0.5
    assert value(found, "tidegate_decisions_total", action="scale_out") == 1
    assert value(found, "tidegate_decisions_total", action="held_back") == 1
    assert value(found, "tidegate_decisions_total", action="hold") == len(FULL) - len(REASONS)
    assert value(found, "tidegate_control_failures_total") == 2
    assert value(found, "tidegate_control_up") == 0
    rows = sum(one.measurement.processed_rate for one in FULL)
    assert value(found, "tidegate_rows_total") == pytest.approx(rows)
    assert value(found, "tidegate_rows_shed_total", **{"class": 'a "b"\\\n'}) == 5 * len(FULL)
    assert value(found, "tidegate_rows_shed_total", **{"class": "none"}) == 5 * len(FULL)


def test_late_and_skipped_rows_are_counted_for_each_operator() -> None:
    records = surge()[:3]
    for tick, rows in enumerate((2, 0, 5)):
        parse, per_ad = records[tick].measurement.operators
        told = (replace(parse, skipped_rows=rows), replace(per_ad, late_rows=10 * rows))
        records[tick] = replace(
            records[tick], measurement=replace(records[tick].measurement, operators=told)
        )
    found = values(exposed(watched(records)))
    assert value(found, "tidegate_rows_skipped_total", operator="parse") == 7
    assert value(found, "tidegate_rows_late_total", operator="per_ad") == 70
    assert not any(
        "per_ad" in str(labels) for labels in found.get("tidegate_rows_skipped_total", [])
    )


def test_what_is_not_known_is_left_out() -> None:
    record = replace(
        surge()[12],
        target_s=None,
        measurement=replace(surge()[12].measurement, cores_busy=None, operators=()),
    )
    found = values(exposed(replace(watched([record]), most_cores=None)))
    names = {name for name, _ in found}
    assert record.measurement.latency is None
    assert not names & {
        "tidegate_latency_seconds",
        "tidegate_target_seconds",
        "tidegate_cores_most",
        "tidegate_tasks",
        "tidegate_lag_rows",
        "tidegate_forecast_rows_per_second",
    }
    assert value(found, "tidegate_cores", state="busy") is None
    assert value(found, "tidegate_cores", state="granted") is not None


def test_a_stall_is_late_although_no_batch_ends() -> None:
    """Rows wait, no batch ends: the latency to judge by grows with the time since the last one."""
    records = surge()[:12]
    still = [
        replace(
            surge()[12],
            measurement=replace(surge()[12].measurement, at_s=records[-1].measurement.at_s + wait),
        )
        for wait in range(1, 20)
    ]
    found = values(exposed(watched([*records, *still])))
    assert value(found, "tidegate_judged_latency_seconds") == pytest.approx(19.0)


def test_every_pipeline_has_its_own_samples() -> None:
    found = values(exposed(watched(FULL), watched(FULL[:5], name="orders")))
    assert value(found, "tidegate_target_seconds") == 2.0
    assert ("tidegate_target_seconds", frozenset({("pipeline", "orders")})) in found


@given(name=st.text(st.characters(exclude_categories=()), min_size=1))
def test_any_name_can_be_exposed(name: str) -> None:
    one = FULL[-1].measurement.operators[0]
    tick = replace(FULL[-1].measurement, operators=(replace(one, name=name),))
    seen = watched([replace(FULL[-1], measurement=tick)], name=name)
    for accept, parse in (("", plain_text), (OPENMETRICS, openmetrics)):
        found = values(exposed(seen, accept=accept), parse)
        shown = re.sub("[\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", name)
        key = ("tidegate_tasks", frozenset({("pipeline", shown), ("operator", shown)}))
        assert found[key] == one.tasks


def names_in(text: str) -> set[str]:
    return set(re.findall(r"\btidegate_[a-z_]+\b", text))


@pytest.mark.parametrize("file", ["grafana-dashboard.json", "alerts.yml"])
def test_every_metric_of_a_dashboard_or_rule_exists(file: str) -> None:
    text = (ROOT / "deploy" / file).read_text(encoding="utf-8")
    asked = names_in(text)
    known = {name for name, _ in values(exposed(watched(FULL)))}
    assert len(asked) > 5
    assert asked - known == set()


def test_the_dashboard_asks_for_labels_that_exist() -> None:
    dashboard = json.loads((ROOT / "deploy" / "grafana-dashboard.json").read_text("utf-8"))
    known: dict[str, set[str]] = {}
    for (name, labels), _ in values(exposed(watched(FULL))).items():
        known.setdefault(name, {"instance", "job"}).update(label for label, _ in labels)
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            offered = set().union(*(known[name] for name in names_in(target["expr"])))
            asked = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
            assert asked <= offered, panel["title"]


def test_a_notice_is_active_from_its_beginning_to_its_end() -> None:
    first, second, third = surge(5)[2:]
    begun = Notice(kind="shedding", ended=False, since_s=1.0, at_s=1.0, what="rows are shed")
    ended = replace(begun, ended=True, at_s=9.0)
    records = [replace(first, notices=(begun,)), second, replace(third, notices=(ended,))]

    def active(*told: Record) -> dict[str, float]:
        text = Exposition(lambda: [watched(told)]).text()[0].decode()
        found = values(text)
        return {
            dict(labels)["kind"]: value
            for (name, labels), value in found.items()
            if name == "tidegate_notice_active"
        }

    assert active(*records[:2]) == {kind: float(kind == "shedding") for kind in KINDS}
    assert set(active(*records).values()) == {0.0}
    restarted = replace(second, tick=1)
    assert set(active(*records[:2], restarted).values()) == {0.0}, "the run before was killed"


def test_all_rules_have_what_a_person_needs() -> None:
    text = (ROOT / "deploy" / "alerts.yml").read_text(encoding="utf-8")
    rules = text.count("- alert:")
    assert rules == 7
    for key in ("expr:", "severity:", "summary:", "description:"):
        assert text.count(key) == rules
