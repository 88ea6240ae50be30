"""Rows whose time lies in the future: the clock of who made them is wrong.

They are processed like all others. But neither the watermark nor a latency follows them, and one
line in the log says so.
"""

import logging
from collections.abc import Iterable

from tidegate.control.learning.sojourn import SLOT_US
from tidegate.spark.batch.report import TaskReport

AHEAD_US = 60_000_000
"""Clocks of machines differ by seconds; more than a minute is wrong."""
_LOG = logging.getLogger("tidegate")


class AheadRows:
    """Says it once for each operator of a run."""

    def __init__(self, pipeline: str) -> None:
        self._pipeline = pipeline
        self._told: set[str] = set()

    def look(self, reports: Iterable[TaskReport], at_us: int) -> None:
        """Look at the reports of a batch that was planned at this time."""
        for report in reports:
            if report.operator in self._told:
                continue
            arrivals = [
                stamps
                for stamps in (report.stamps, None if report.shed is None else report.shed.stamps)
                if stamps is not None and stamps.newest_us > at_us + AHEAD_US
            ]
            if not report.ahead_rows and not arrivals:
                continue
            self._told.add(report.operator)
            ahead = sum(
                int(stamps.counts[stamps.slots * SLOT_US > at_us + AHEAD_US].sum())
                for stamps in arrivals
            )
            _LOG.warning(
                "pipeline '%s': operator '%s' got %d rows with a time more than a minute in the "
                "future; they are processed, but latency and watermark do not follow them; check "
                "the clocks of who makes them",
                self._pipeline,
                report.operator,
                max(ahead, report.ahead_rows),
            )
