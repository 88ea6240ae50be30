"""Made-up records and results of runs, so that figures can be drawn from them without Spark."""

from collections.abc import Sequence

from tidegate.control.decision import Decision, hold
from tidegate.control.learning.outliers import NEW_TASKS
from tidegate.control.measurement import (
    BatchMeasurement,
    Measurement,
    OperatorMeasurement,
    SegmentMeasurement,
)
from tidegate.control.record import Record
from tidegate.papers.flink_er.breaks import Break
from tidegate.papers.flink_er.minutes import Minute
from tidegate.papers.flink_er.outcome import StrategyOutcome
from tidegate.papers.flink_er.setting import MINUTES
from tidegate.papers.flink_er.state_moves import StateMove, Transfer
from tidegate.papers.flink_er.usage import MinuteUsage

READER = "lines"
START_S = 1000.0


def batch(ended_s: float, rows: int, *, tasks: int = 6, duration_s: float = 2.0, **more: object):
    """A batch that ended so many seconds after the start."""
    return BatchMeasurement(
        batch_id=0,
        rows=rows,
        tasks=tasks,
        imbalance=1.0,
        duration_s=duration_s,
        ended_s=START_S + ended_s,
        **more,  # type: ignore[arg-type]
    )


def tick(
    at_s: float,
    batches: Sequence[BatchMeasurement] = (),
    *,
    read: int | None = None,
    cores: int = 6,
    backlog: float = 0.0,
    busy_s: float = 0.0,
    decision: Decision | None = None,
) -> Record:
    """A record of a pipeline with one segment; `read` are the rows of the source, if not all."""
    rows = sum(one.rows for one in batches)
    return Record(
        tick=0,
        policy="flow",
        target_s=8.0,
        measurement=Measurement(
            at_s=START_S + at_s,
            interval_s=1.0,
            arrival_rate=100.0,
            processed_rate=100.0,
            backlog_rows=backlog,
            cores_asked=cores,
            cores_granted=cores,
            saturated=False,
            operators=(
                OperatorMeasurement(
                    name=READER,
                    arrival_rate=0.0,
                    service_rate=0.0,
                    rows=rows if read is None else read,
                    busy_s=busy_s,
                ),
            ),
            segments=(
                SegmentMeasurement(
                    name="main",
                    arrival_rate=100.0,
                    backlog_rows=backlog,
                    tasks=cores,
                    batches=tuple(batches),
                ),
            ),
        ),
        decision=decision or hold("enough"),
        acted=decision is not None,
    )


def rescaled_run() -> list[Record]:
    """Ten batches of two seconds; the sixth is the first with eight tasks and takes three."""
    ends = [2.0, 4.0, 6.0, 8.0, 10.0, 13.0, 15.0, 17.0, 19.0, 21.0]
    records = []
    for number, ended_s in enumerate(ends):
        new = number == 5
        one = batch(
            ended_s,
            200,
            tasks=8 if number >= 5 else 6,
            duration_s=3.0 if new else 2.0,
            latency_s=3.0,
            outlier=NEW_TASKS if new else None,
        )
        wish = Decision(reason="full", cores=8, tasks={"count": 8}) if number == 4 else None
        records.append(tick(ended_s + 0.5, [one], cores=one.tasks, busy_s=3.0, decision=wish))
    return records


def outcome(
    strategy: str,
    *,
    rows_per_s: float,
    latency_s: float,
    breaks: tuple[Break, ...] = (),
    usage: bool = True,
) -> StrategyOutcome:
    """A run that was alike in all its minutes."""
    return StrategyOutcome(
        strategy=strategy,
        minutes=tuple(
            Minute(
                at=at,
                rows_per_s=rows_per_s,
                latency_s=latency_s,
                waiting_rows=10.0 * at,
                cores=6,
                occupied=0.9,
            )
            for at in range(1, MINUTES + 1)
        ),
        breaks=breaks,
        gaps_s=(1.0, 2.0, 2.0),
        peak_latency_s=latency_s,
        changes=((6.0, "10 cores (count 10)"),) if breaks else (),
        usage=tuple(MinuteUsage(at=at, memory_mb=1500.0, cpu=0.6) for at in range(1, MINUTES + 1))
        if usage
        else (),
    )


def state_move(
    *, rescale_s: float = 0.5, restart_s: float = 5.0, share: float = 0.25, wrong: str | None = None
) -> StateMove:
    """Ten megabytes, of which a rescale fetches a share."""
    size = 10_000_000
    return StateMove(
        title="TwitterSentiment",
        filled="1,000 users",
        state_bytes=size,
        written_bytes=200_000.0,
        moved_shards=share,
        rescaled=Transfer(round(share * size), 1.0 + rescale_s, 1.0),
        restarted=Transfer(size, 1.0 + restart_s, 1.0),
        wrong=wrong,
    )
