"""A fake streaming query that returns prepared progress reports, to test without Spark."""

from types import SimpleNamespace

from tidegate.spark.measure.progress import BatchProgress


def progress(batch_id: int, start_s: float, duration_s: float, rows: int, span_s: float = 1.0):
    return BatchProgress(
        batch_id=batch_id,
        rows=rows,
        arrival_rate=rows / span_s,
        processed_rate=rows / duration_s,
        start_us=round(start_s * 1e6),
        duration_s=duration_s,
        offsets_s=0.0,
        planning_s=0.0,
        reading_s=0.0,
        work_s=duration_s,
        log_s=0.0,
        other_s=0.0,
    )


class FakeMeter:
    """Returns each prepared progress report once."""

    def __init__(self) -> None:
        self.coming: list[BatchProgress] = []

    def read(self) -> list[BatchProgress]:
        found, self.coming = self.coming, []
        return found


class FakeQuery:
    def __init__(self, name: str, trigger: str = "ProcessingTimeTrigger(0)") -> None:
        self.name, self.id, self.runId = name, f"id-{name}", f"run-{name}"
        self.available, self.active = True, False
        self.message = "Waiting for data to arrive"
        self._jsq = SimpleNamespace(
            status=lambda: SimpleNamespace(
                isDataAvailable=lambda: self.available,
                isTriggerActive=lambda: self.active,
                message=lambda: self.message,
            ),
            streamingQuery=lambda: SimpleNamespace(
                trigger=lambda: SimpleNamespace(toString=lambda: trigger)
            ),
        )
        self.meter = FakeMeter()
