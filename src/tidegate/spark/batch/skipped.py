"""Says in the log that rows are skipped, and why: once for each operator and kind of error."""

import logging
from collections.abc import Iterable

from tidegate.spark.batch.report import TaskReport

_LOG = logging.getLogger("tidegate")
_MOST = 20
"""Kinds of errors that are told of one operator."""


class SkippedRows:
    """Looks at the reports of a run's batches."""

    def __init__(self, pipeline: str) -> None:
        self._pipeline = pipeline
        self._told: dict[str, set[str]] = {}

    def look(self, reports: Iterable[TaskReport]) -> None:
        """Look at the reports of a batch."""
        for report in reports:
            if not report.skipped_rows or report.skipped_error is None:
                continue
            told = self._told.setdefault(report.operator, set())
            kind = report.skipped_error.partition(":")[0]
            if kind in told or len(told) == _MOST:
                continue
            told.add(kind)
            _LOG.warning(
                "pipeline '%s': operator '%s' skipped %d rows that its function could not process"
                " (%s); records and metrics count further ones",
                self._pipeline,
                report.operator,
                report.skipped_rows,
                report.skipped_error,
            )
