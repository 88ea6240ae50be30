"""What a pipeline behind a full source got done while a paradigm followed its load."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from tidegate.apps.full_pipeline import FullPipeline
from tidegate.apps.paradigms import shard_rows
from tidegate.apps.turns import (
    latency_percentile_s,
    longest_over_median,
    mean_latency_s,
    mean_rate,
    rows_per_second,
)
from tidegate.control.shards.balance import other_shares


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkDone:
    """What one paradigm got done."""

    paradigm: str
    tasks: int
    rows_per_s: tuple[float, ...]
    """Rows done in each second."""
    mean_rows_per_s: float
    mean_latency_s: float
    """From the end of the batch before a row's own, when its turn came, until it was done."""
    p99_latency_s: float
    imbalance: float
    """delta of the batches, their mean."""
    moves: int
    """Shards that changed their task."""
    state_bytes_per_s: float
    """State that tasks fetched because their node did not have it; none in a single process."""
    longest_over_median: float
    """The longest batch over the median one, with the time that it had to wait for its start."""
    breaks_s: tuple[float, ...]
    """The time without a batch, each time that the query was stopped and started."""
    exactly_once: bool
    batches: int
    """How many were judged."""
    shuffled_s: tuple[float, ...]
    """When batches began in which other keys were hot than in the batch before, in seconds since
    the first judged batch began."""
    previewed: int
    """Batches whose rows were counted before they were routed."""
    preview_s: float
    """How long that took in such a batch, on average."""
    busy_share: float
    """The part of a batch in which the slowest task of its operator was at work."""

    def document(self) -> dict[str, Any]:
        """The figures as plain values."""
        return {
            "paradigm": self.paradigm,
            "tasks": self.tasks,
            "mean_rows_per_s": round(self.mean_rows_per_s, 1),
            "mean_latency_s": round(self.mean_latency_s, 3),
            "p99_latency_s": round(self.p99_latency_s, 3),
            "imbalance": round(self.imbalance, 3),
            "moves": self.moves,
            "state_bytes_per_s": round(self.state_bytes_per_s),
            "longest_over_median": round(self.longest_over_median, 2),
            "restarts": len(self.breaks_s),
            "mean_break_s": round(float(np.mean(self.breaks_s)), 3) if self.breaks_s else None,
            "exactly_once": self.exactly_once,
            "batches": self.batches,
            "previewed": self.previewed,
            "preview_s": round(self.preview_s, 3),
            "busy_share": round(self.busy_share, 3),
            "shuffled_s": [round(at_s, 2) for at_s in self.shuffled_s],
            "rows_per_s": [round(rows, 1) for rows in self.rows_per_s],
        }


def work_done(
    full: FullPipeline,
    paradigm: str,
    tasks: int,
    *,
    warm_batches: int,
    breaks: Sequence[float],
    exactly_once: bool,
) -> WorkDone:
    """Judge a stopped pipeline by all its batches but the first ones."""
    turns = full.turns()[warm_batches - 1 :]
    spent_s = sum(turn.seconds for turn in turns)
    fetched = sum(
        report.durable_bytes for result in full.results[warm_batches:] for report in result.reports
    )
    previews_s = [
        sum(result.previews_s.values())
        for result in full.results[warm_batches:]
        if result.previews_s
    ]
    return WorkDone(
        paradigm=paradigm,
        tasks=tasks,
        rows_per_s=rows_per_second(turns),
        mean_rows_per_s=mean_rate(turns),
        mean_latency_s=mean_latency_s(turns),
        p99_latency_s=latency_percentile_s(turns, 99.0),
        imbalance=float(np.mean([turn.imbalance for turn in turns])),
        moves=sum(turn.moves for turn in turns),
        state_bytes_per_s=fetched / spent_s if spent_s > 0.0 else 0.0,
        longest_over_median=longest_over_median(turns),
        breaks_s=tuple(breaks),
        exactly_once=exactly_once,
        batches=len(turns),
        shuffled_s=tuple(_shuffled_s(full, warm_batches)),
        previewed=len(previews_s),
        preview_s=float(np.mean(previews_s)) if previews_s else 0.0,
        busy_share=_slowest_s(full, warm_batches) / spent_s if spent_s > 0.0 else 0.0,
    )


def _slowest_s(full: FullPipeline, warm_batches: int) -> float:
    """How long the slowest tasks of its operator worked, over all judged batches."""
    judged = full.results[warm_batches:]
    return sum(max((one.busy_s for one in done.of(full.operator)), default=0.0) for done in judged)


def _shuffled_s(full: FullPipeline, warm_batches: int) -> list[float]:
    """When batches began whose rows are spread over the shards in another way than before."""
    judged = full.results[warm_batches - 1 :]
    rows = [shard_rows(result, full.operator).astype(np.float64) for result in judged]
    begun_s = judged[0].ended_s
    return [
        before.ended_s - begun_s
        for before, (old, new) in zip(judged, pairwise(rows), strict=False)
        if other_shares(old, new)
    ]


def averaged(runs: Sequence[WorkDone]) -> WorkDone:
    """Several runs of the same kind as one; the course of seconds is that of the first."""
    return replace(
        runs[0],
        mean_rows_per_s=float(np.mean([one.mean_rows_per_s for one in runs])),
        mean_latency_s=float(np.mean([one.mean_latency_s for one in runs])),
        p99_latency_s=float(np.mean([one.p99_latency_s for one in runs])),
        imbalance=float(np.mean([one.imbalance for one in runs])),
        moves=sum(one.moves for one in runs),
        state_bytes_per_s=float(np.mean([one.state_bytes_per_s for one in runs])),
        longest_over_median=max(one.longest_over_median for one in runs),
        breaks_s=tuple(pause for one in runs for pause in one.breaks_s),
        exactly_once=all(one.exactly_once for one in runs),
        batches=sum(one.batches for one in runs),
        previewed=(previewed := sum(one.previewed for one in runs)),
        preview_s=sum(one.preview_s * one.previewed for one in runs) / max(1, previewed),
        busy_share=float(np.mean([one.busy_share for one in runs])),
    )
