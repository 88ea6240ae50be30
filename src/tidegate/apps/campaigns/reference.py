"""Counts the views of each campaign and window event by event, and compares a run with that."""

import json
from collections import Counter
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from tidegate.apps.application import Verdict
from tidegate.apps.campaigns.events import LATEST_MS, VIEW, AdEvents
from tidegate.apps.campaigns.identifiers import campaign_of_ads
from tidegate.apps.campaigns.options import CampaignOptions
from tidegate.apps.event_progress import EventProgress

ViewCounts = Counter[tuple[str, int]]
"""Views by campaign and start of the window, in milliseconds since the epoch."""

_EVENTS_AT_A_TIME = 65_536


def expected_views(events: AdEvents, arrived: int) -> ViewCounts:
    """The views among the first events."""
    table = campaign_of_ads(events.options, events.seed)
    owners = dict(zip(table["ad"].to_pylist(), table["campaign"].to_pylist(), strict=True))
    found = ViewCounts()
    for first in range(0, arrived, _EVENTS_AT_A_TIME):
        numbers = np.arange(first, min(first + _EVENTS_AT_A_TIME, arrived), dtype=np.int64)
        found += views_of(events.texts(numbers).to_pylist(), owners, events.options.window_s)
    return found


def views_of(texts: Iterable[str], owners: dict[str, str], window_s: int) -> ViewCounts:
    """The views among these events; `owners` has the campaign of each ad."""
    found = ViewCounts()
    for text in texts:
        event = json.loads(text)
        campaign = owners.get(event["ad_id"])
        if event["event_type"] == VIEW and campaign is not None:
            at_ms = event["event_time"]
            found[campaign, at_ms - at_ms % (window_s * 1000)] += 1
    return found


def compare(
    closed: pa.Table | None,
    state: pa.Table,
    expected: ViewCounts,
    arrived: int,
    progress: EventProgress,
    options: CampaignOptions,
) -> Verdict:
    """Whether each window was counted right, once: in the sink, or in the state if it is open."""
    told = [] if closed is None else _views(closed)
    still_open = _views(state)
    found = dict(told + still_open)
    again = len(told) + len(still_open) - len(found)
    wrong = sum(found.get(one, 0) != expected[one] for one in found.keys() | expected.keys())
    total = expected.total()
    what = (
        f"{total:,} views among {arrived:,} events, in {len(told):,} closed windows of campaigns"
        f" and {len(still_open):,} open ones"
    )
    faults = [
        *([f"{wrong} windows have a wrong count"] if wrong else []),
        *([f"{again} windows were told twice"] if again else []),
        *progress.faults(
            _ends_us((one for one in expected if expected[one]), options),
            _ends_us((one for one, _ in still_open), options),
            every_us=options.window_s * 1_000_000,
            size_us=options.window_s * 1_000_000,
            delay_us=LATEST_MS * 1000,
        ),
    ]
    return Verdict(
        correct=not faults,
        said=f"{what}: " + ("; ".join(faults) or "counted as event by event"),
        figures={
            "events": float(arrived),
            "views": float(total),
            "closed_windows": float(len(told)),
            "open_windows": float(len(still_open)),
        },
    )


def _ends_us(windows: Iterable[tuple[str, int]], options: CampaignOptions) -> list[int]:
    return [(start_ms + options.window_s * 1000) * 1000 for _, start_ms in windows]


def _views(rows: pa.Table) -> list[tuple[tuple[str, int], int]]:
    starts = rows["window_start"].cast(pa.timestamp("ms", "UTC")).cast(pa.int64()).to_pylist()
    names, views = rows["campaign"].to_pylist(), rows["count"].to_pylist()
    return [((name, start), count) for name, start, count in zip(names, starts, views, strict=True)]
