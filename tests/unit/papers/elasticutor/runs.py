"""Made-up results of runs, so that figures can be drawn from them without Spark."""

from dataclasses import replace

from tidegate.apps.micro.moves import Move
from tidegate.apps.work_done import WorkDone

_PLAIN = WorkDone(
    paradigm="static",
    tasks=24,
    rows_per_s=(100.0, 100.0),
    mean_rows_per_s=100.0,
    mean_latency_s=0.5,
    p99_latency_s=0.6,
    imbalance=1.5,
    moves=0,
    state_bytes_per_s=0.0,
    longest_over_median=1.0,
    breaks_s=(),
    exactly_once=True,
    batches=200,
    shuffled_s=(),
    previewed=0,
    preview_s=0.0,
    busy_share=0.8,
)


def done(rate: float, **changes: object) -> WorkDone:
    """A run with this throughput."""
    return replace(_PLAIN, mean_rows_per_s=rate, **changes)  # type: ignore[arg-type]


def move(state_kb: float, cost_s: float, *, between: bool, share: float = 1.0) -> Move:
    """A move whose batch took so much longer than the median of 0.4 s."""
    return Move(
        state_kb=state_kb,
        shard=0,
        between=between,
        batch_s=0.4 + cost_s,
        median_s=0.4,
        fetched_bytes=round(share * state_kb * 1024) if between else 0,
        waited_s=0.2,
        boundary_s=0.03,
        state_s=cost_s / 2,
        exactly_once=True,
    )
