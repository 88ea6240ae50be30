"""Figures 7 to 10 as charts: throughput, latency, rows waiting, cores, CPU and memory."""

from collections.abc import Callable, Sequence

from tidegate.papers.flink_er.experiments import LoadExperiment
from tidegate.papers.flink_er.outcome import StrategyOutcome
from tidegate.view.pages.paper import Curve, Picture


def pictures(experiment: LoadExperiment, outcomes: Sequence[StrategyOutcome]) -> list[Picture]:
    """A chart for each quantity, with a line for each strategy and a point for each minute."""
    title, figure = experiment.title, experiment.figure.removeprefix("fig")

    def drawn(
        what: str, label: str, of: Callable[[StrategyOutcome], list[tuple[int, float]]]
    ) -> Picture:
        lines = []
        for one in outcomes:
            points = of(one)
            x, y = tuple(float(at) for at, _ in points), tuple(value for _, value in points)
            lines.append(Curve(one.strategy, x, y))
        return Picture(f"{title}: {what} (figure {figure})", "minute", label, tuple(lines))

    return [
        drawn("throughput", "rows/s", lambda o: [(m.at, m.rows_per_s) for m in o.minutes]),
        drawn(
            "latency",
            "seconds",
            lambda o: [(m.at, m.latency_s) for m in o.minutes if m.latency_s is not None],
        ),
        drawn("rows waiting", "rows", lambda o: [(m.at, m.waiting_rows) for m in o.minutes]),
        drawn("cores", "cores", lambda o: [(m.at, float(m.cores)) for m in o.minutes]),
        drawn(
            "occupied cores",
            "share",
            lambda o: [(m.at, m.occupied) for m in o.minutes],
        ),
        drawn("memory of all processes", "MB", lambda o: [(m.at, m.memory_mb) for m in o.usage]),
        drawn("CPU of the machine", "share", lambda o: [(m.at, m.cpu) for m in o.usage]),
    ]
