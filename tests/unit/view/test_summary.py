"""The summary's arithmetic, against the same told second by second."""

import dataclasses
import io
import json

import numpy as np
import pytest
from rich.console import Console

from tests.helpers.synthetic_surge import START_S, TARGET_S, record, surge
from tidegate.commands.table import fitted
from tidegate.control.decision import Decision
from tidegate.control.measurement import BatchMeasurement, Latency, SegmentMeasurement
from tidegate.control.record import Record
from tidegate.control.row_counts import SourceCount
from tidegate.errors import AskedWrongly
from tidegate.view.changes import again, changes_of, outcome_of, words_of
from tidegate.view.percentiles import pooled_quantile
from tidegate.view.summary import summarise


def measured(one: Record, **fields: object) -> Record:
    return dataclasses.replace(one, measurement=dataclasses.replace(one.measurement, **fields))


def test_against_brute_force() -> None:
    records = surge()
    summary = summarise(records, warm_up_s=5)
    late = [tick for tick in range(5, 40) if 9 <= tick <= 13]
    assert summary.within_target == pytest.approx(1 - len(late) / 35)
    assert summary.judged_seconds == 35
    seen = [one.measurement for one in records[5:] if one.measurement.latency]
    total = sum(tick.processed_rate for tick in seen)
    mean_s = sum(tick.latency.mean_s * tick.processed_rate for tick in seen) / total
    assert summary.mean_s == pytest.approx(mean_s)
    ticks = [one.measurement for one in records]
    assert summary.core_seconds == sum(tick.cores_granted for tick in ticks)
    assert summary.busy_core_seconds == pytest.approx(
        sum(min(tick.cores_busy, tick.cores_granted) for tick in ticks)
    )
    assert (summary.static_cores, summary.static_core_seconds) == (4, 160)
    assert (summary.changes, summary.reversals, summary.moves, summary.held_back) == (2, 1, 2, 1)
    assert summary.rows == 20 * 1800 + 20 * 600
    assert summary.arrived_rows == summary.rows + 50, "what was done, and what waits at the end"
    assert summary.largest_backlog_rows == 900


def test_ticks_of_unequal_length_count_by_their_seconds() -> None:
    short, long = measured(record(0), interval_s=1.0), measured(record(9), interval_s=3.0)
    summary = summarise([short, long])
    assert summary.within_target == pytest.approx(1 / 4)
    assert summary.core_seconds == 2 * 4


def test_a_warm_up_leaves_latency_out_but_no_cost() -> None:
    warm = summarise(surge(), warm_up_s=14)
    assert warm.within_target == 1.0
    assert warm.mean_s is not None and warm.mean_s < TARGET_S
    assert warm.core_seconds == summarise(surge()).core_seconds
    assert summarise(surge(), warm_up_s=100).within_target is None


def test_the_percentile_can_be_what_is_judged() -> None:
    late = sum(
        1 for tick in range(40) if tick == 12 or record(tick).measurement.latency.p95_s > TARGET_S
    )
    assert summarise(surge(), statistic="p95").within_target == pytest.approx(1 - late / 40)


def test_a_stall_with_rows_waiting_is_late_once_it_outlasts_the_target() -> None:
    stall = [measured(record(tick), latency=None) for tick in range(1, 6)]
    summary = summarise([record(0), *stall])
    # Tick 0 is on time, then rows have waited for 1, 2, 3, 4, 5 s against a target of 2 s.
    assert summary.within_target == pytest.approx(3 / 6)


def test_silence_is_not_judged() -> None:
    idle = [measured(record(tick), latency=None, backlog_rows=0.0) for tick in range(1, 6)]
    summary = summarise([record(0), *idle])
    assert (summary.judged_seconds, summary.within_target) == (1, 1.0)


def test_no_target_gives_no_share() -> None:
    records = [dataclasses.replace(one, target_s=None) for one in surge()]
    summary = summarise(records)
    assert summary.within_target is None
    assert summary.document()["target_ms"] is None
    assert "-" in dict(summary.lines()).values()


def test_reversals_are_turns_not_steps() -> None:
    def chosen(tick: int, before: int, after: int, acted: bool = True) -> Record:
        decision = Decision(reason="r", cores=after)
        one = dataclasses.replace(record(0), decision=decision, acted=acted)
        return measured(one, at_s=START_S + tick, cores_asked=before)

    rising = [chosen(1, 1, 2), chosen(2, 2, 3), chosen(3, 3, 4)]
    assert summarise(rising).reversals == 0
    turning = [*rising, chosen(4, 4, 2), chosen(5, 2, 3), chosen(6, 3, 1, acted=False)]
    assert (summarise(turning).changes, summarise(turning).reversals) == (5, 2)
    assert summarise([chosen(1, 3, 3)]).changes == 0


def test_static_cores_can_be_given() -> None:
    summary = summarise(surge(), static_cores=16)
    assert summary.static_core_seconds == 640
    assert summary.cost == pytest.approx(summary.core_seconds / 640)


def test_the_document_is_json_and_the_table_says_the_same() -> None:
    summary = summarise(surge(), warm_up_s=5)
    document = json.loads(json.dumps(summary.document(), allow_nan=False))
    assert document["within_target"] == 0.8571
    assert document["target_ms"] == 2000.0
    assert document["core_seconds"] == 128.0
    assert document["static_core_seconds"] == 160.0
    lines = dict(summary.lines())
    assert lines["time within the target after the first 5 s"] == "86 %"
    assert lines["rows completed"] == "48,000"
    assert summary.table("a run").row_count == len(lines)


def test_rows_are_counted_by_batches_where_these_are_told() -> None:
    def batch(number: int, rows: int) -> BatchMeasurement:
        return BatchMeasurement(
            batch_id=number, rows=rows, tasks=2, imbalance=1.0, duration_s=1.0, ended_s=START_S
        )

    def segment(name: str, *batches: BatchMeasurement, **fields: bool) -> SegmentMeasurement:
        return SegmentMeasurement(
            name=name, arrival_rate=1.0, backlog_rows=0.0, tasks=2, batches=batches, **fields
        )

    kept = SourceCount(name="clicks", offered=1000, kept=900)
    first = measured(
        record(0),
        segments=(segment("main", batch(1, 400)), segment("behind", batch(1, 400))),
        sources=(kept,),
    )
    second = measured(
        record(1),
        segments=(segment("main", batch(2, 300), batch(3, 200)), segment("behind")),
        backlog_rows=7.0,
    )
    summary = summarise([first, second])
    assert (summary.rows, summary.arrived_rows) == (900, 900 + 100 + 7)
    apart = measured(record(0), segments=(segment("a", batch(1, 5)), segment("b", apart=True)))
    assert summarise([apart]).rows == 5
    looped = measured(record(0), segments=(segment("main", batch(1, 5), loops=True),))
    assert summarise([looped]).rows == 600, "rows that come back would count twice"


def test_no_more_cores_are_busy_than_there_are() -> None:
    busy = measured(record(0), cores_busy=2.65, cores_granted=2)
    assert busy.measurement.busy_of_granted == 2.0
    assert dict(summarise([busy]).lines())["core-seconds at work"] == "2"


def test_the_headline_says_it_in_one_sentence() -> None:
    summary = summarise(surge(), warm_up_s=40 / 6)
    assert summary.headline == (
        "On time 85 % of the time: mean latency 1.53 s, target 2 s; 80 % of what 4 fixed cores"
        " cost."
    )
    assert "after the first 6.67 s" in summary.lines()[0][0]
    untold = [dataclasses.replace(one, target_s=None) for one in surge()]
    assert summarise(untold).headline.startswith("Mean latency 1.48 s, no target; 80 %")
    idle = measured(record(0), latency=None, backlog_rows=0.0)
    assert summarise([idle]).headline.startswith("No row was completed")


@pytest.mark.parametrize("width", [80, 60])
def test_the_table_fits_a_narrow_terminal(width: int) -> None:
    console = Console(file=io.StringIO(), width=width, _environ={})
    summary = summarise(surge(), warm_up_s=40 / 6)
    console.print(fitted(summary.table("tidegate demo"), console))
    text = console.file.getvalue()
    assert "…" not in text and max(map(len, text.splitlines())) <= width
    words = set(text.replace("│", " ").split())
    assert {
        word for label, value in summary.lines() for word in f"{label} {value}".split()
    } <= words


def test_state_that_had_to_be_read_is_said() -> None:
    assert "state read from the checkpoint" not in dict(summarise(surge()).lines())
    records = surge()
    for tick, (nodes, durable_bytes) in enumerate(((("a", "b"), 0), (("a", "a"), 3 * 2**20))):
        parse, per_ad = records[tick].measurement.operators
        told = dataclasses.replace(per_ad, nodes=nodes, durable_bytes=durable_bytes)
        records[tick] = measured(records[tick], operators=(parse, told))
        assert Record.from_json(records[tick].to_json()) == records[tick]
    calm = summarise(records[:1])
    assert calm.nodes == 2 and dict(calm.lines())["state read from the checkpoint"] == "0 B"
    assert dict(summarise(records).lines())["state read from the checkpoint"] == "3.0 MiB"
    assert summarise(records).document()["state_fetched_bytes"] == 3 * 2**20


def test_late_rows_are_said_for_each_operator_that_had_some() -> None:
    assert not any("late rows" in label for label, _ in summarise(surge()).lines())
    records = surge()
    for tick, late_rows in enumerate((2, 0, 1500)):
        parse, per_ad = records[tick].measurement.operators
        told = dataclasses.replace(per_ad, late_rows=late_rows)
        records[tick] = measured(records[tick], operators=(parse, told))
        assert Record.from_json(records[tick].to_json()) == records[tick]
    summary = summarise(records)
    assert dict(summary.lines())["late rows of 'per_ad'"] == "1,502"
    assert summary.document()["late_rows"] == {"per_ad": 1502}


def test_skipped_rows_are_said_for_each_operator_that_had_some() -> None:
    assert not any("skipped" in label for label, _ in summarise(surge()).lines())
    records = surge()
    for tick, skipped_rows in enumerate((3, 0, 4)):
        parse, per_ad = records[tick].measurement.operators
        told = dataclasses.replace(parse, skipped_rows=skipped_rows)
        records[tick] = measured(records[tick], operators=(told, per_ad))
        assert Record.from_json(records[tick].to_json()) == records[tick]
    summary = summarise(records)
    assert dict(summary.lines())["rows that 'parse' skipped"] == "7"
    assert summary.document()["skipped_rows"] == {"parse": 7}


def test_no_record_is_refused() -> None:
    with pytest.raises(AskedWrongly, match="no record to summarise"):
        summarise([])


def test_pooled_quantile_against_drawn_rows() -> None:
    random = np.random.default_rng(3)
    latencies, rows, drawn = [], [], []
    for _ in range(12):
        p50, p95, p99 = np.sort(random.uniform(0.2, 4.0, 3))
        latencies.append(Latency(mean_s=p50, p50_s=p50, p95_s=p95, p99_s=p99))
        rows.append(int(random.integers(2_000, 20_000)))
        heights = (np.arange(rows[-1]) + 0.5) / rows[-1]
        drawn.append(np.interp(heights, [0, 0.5, 0.95, 0.99], [0, p50, p95, p99]))
    for share in (0.5, 0.95, 0.99):
        expected = np.quantile(np.concatenate(drawn), share)
        assert pooled_quantile(latencies, rows, share) == pytest.approx(expected, rel=2e-3)


def test_pooled_quantile_of_like_ticks_is_theirs() -> None:
    one = Latency(mean_s=1.0, p50_s=0.9, p95_s=1.7, p99_s=2.5)
    assert pooled_quantile([one] * 5, [1, 2, 3, 4, 5], 0.95) == pytest.approx(1.7)
    flat = Latency(mean_s=1.0, p50_s=1.0, p95_s=1.0, p99_s=1.0)
    assert pooled_quantile([flat], [0.0], 0.95) == pytest.approx(1.0)


def test_words_for_what_changed() -> None:
    assert words_of(record(10)) == "cores 2 to 4, tasks of per_ad 2 to 4, tasks of parse 2 to 4"
    assert words_of(record(14)) == "move 2 shards of per_ad"
    assert words_of(record(0)) == "nothing to change"
    assert outcome_of(record(10)) == "done"
    assert outcome_of(record(20)) == "held back: the maximum is 4"
    shed = dataclasses.replace(record(0), decision=Decision(reason="r", keep=0.9))
    assert words_of(shed) == "keep 90 % of the rows"
    assert outcome_of(shed) == "not acted on"
    one = dataclasses.replace(record(0), decision=Decision(reason="r", moves={"per_ad": {1: 0}}))
    assert words_of(one) == "move 1 shard of per_ad"


def test_what_is_so_already_is_no_change() -> None:
    same = Decision(reason="r", cores=2, tasks={"parse": 2}, moves={"per_ad": {}})
    assert changes_of(dataclasses.replace(record(0), decision=same)) == ()


def test_a_wish_is_said_again_only_while_it_is_not_granted() -> None:
    held = record(20)
    assert again(held, held)
    assert not again(None, held)
    assert not again(record(10), record(10))
