"""The figures and tables of Flink-ER, section 4, that can be run."""

from functools import partial

from tidegate.papers.figure import Figure, on_spark
from tidegate.papers.flink_er.comparison import figure_7, figure_8, figure_9, figure_10
from tidegate.papers.flink_er.moving_state import figure_11
from tidegate.papers.flink_er.summary import table_3

_on_spark = partial(on_spark, "flink-er")

FIGURES: tuple[Figure, ...] = (
    _on_spark("fig7", "WordCount: latency and rows waiting", 6.0, figure_7),
    _on_spark("fig8", "TwitterSentiment: throughput and memory", 6.0, figure_8),
    _on_spark("fig9", "IncrementalLearning: throughput and CPU", 6.0, figure_9),
    _on_spark("fig10", "Streaming-Benchmarks: throughput, latency, rows waiting", 6.0, figure_10),
    Figure(
        paper="flink-er",
        figure="fig11",
        about="what moving state costs at a rescale",
        body="spark",
        minutes=5.0,
        run=figure_11,
    ),
    Figure(
        paper="flink-er",
        figure="table3",
        about="summary of the experiments, from the last results of fig7 to fig11",
        body="spark",
        minutes=0.1,
        run=table_3,
    ),
)
"""Figures 1 to 6 explain, and tables 1 and 2 are the paper's machines and software."""
