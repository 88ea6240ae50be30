"""The figures of the overload paper, section 4; figures 1 to 4 explain."""

from functools import partial

from tidegate.papers.figure import Figure, on_spark
from tidegate.papers.overload.held import figure_6
from tidegate.papers.overload.runs import OPTIONS
from tidegate.papers.overload.unshed import figure_5

_on_spark = partial(on_spark, "overload", options=OPTIONS)

FIGURES: tuple[Figure, ...] = (
    _on_spark("fig5", "latency with nothing shed, against the number of queries", 8.0, figure_5),
    _on_spark(
        "fig6",
        "latency held by shedding, for targets of 0.5 to 3 s",
        14.0,
        figure_6,
        also=("fig7",),
    ),
    _on_spark(
        "fig7",
        "distribution of latencies with 200 queries, by the runs of fig6",
        14.0,
        figure_6,
        also=("fig6",),
    ),
)
