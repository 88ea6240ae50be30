"""All figures and tables with results of the five papers: which can be run, and how."""

from tidegate.papers.drs import figures as drs
from tidegate.papers.elasticutor import figures as elasticutor
from tidegate.papers.figure import Figure


def _later(paper: str, figure: str, about: str) -> Figure:
    """A figure that cannot be run by this command yet."""
    return Figure(paper=paper, figure=figure, about=about, body="simulated", minutes=0.0)


FIGURES: tuple[Figure, ...] = (
    *drs.FIGURES,
    *elasticutor.FIGURES,
    _later("overload", "fig5", "latency without a controller, against the number of queries"),
    _later("overload", "fig6", "latency held by shedding, for targets of 0.5 to 3 s"),
    _later("overload", "fig7", "distribution of latencies with 200 queries"),
    _later("mst", "fig6", "throughput models of eight applications"),
    _later("mst", "table2", "peak loads of the applications"),
    _later("mst", "fig7", "QoS and cost of policies 0 to 7, averaged"),
    _later("mst", "fig8", "QoS and cost of policies 0, 1, 5, 7 by application"),
    _later("mst", "fig9", "QoS against its target rho"),
    _later("mst", "fig10", "machines over a week, Grep"),
    _later("flink-er", "fig7", "WordCount: latency and rows waiting"),
    _later("flink-er", "fig8", "TwitterSentiment: throughput and memory"),
    _later("flink-er", "fig9", "IncrementalLearning: throughput and CPU"),
    _later("flink-er", "fig10", "Streaming-Benchmarks: throughput, latency, rows waiting"),
    _later("flink-er", "fig11", "what moving state costs at a rescale"),
    _later("flink-er", "table3", "summary of the experiments"),
)
"""In the order of the papers."""
