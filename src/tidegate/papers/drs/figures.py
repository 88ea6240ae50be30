"""The figures and tables of DRS, section V, that can be run."""

from functools import partial

from tidegate.papers.drs.bulk import figure_10
from tidegate.papers.drs.overhead import table_2
from tidegate.papers.drs.rates import figure_9
from tidegate.papers.drs.rebalancing import figure_8
from tidegate.papers.drs.six_splits import figure_6
from tidegate.papers.figure import Figure, on_spark

_APP = {"app": "run only this application, vld or fpd"}


_on_spark = partial(on_spark, "drs")

FIGURES: tuple[Figure, ...] = (
    _on_spark(
        "fig6",
        "sojourn of six splits, both applications",
        50.0,
        figure_6,
        options=_APP,
        also=("fig7",),
    ),
    _on_spark(
        "fig7",
        "model against measurement, by the runs of fig6",
        50.0,
        figure_6,
        options=_APP,
        also=("fig6",),
    ),
    _on_spark(
        "fig8", "re-balancing from wrong splits, both applications", 10.0, figure_8, options=_APP
    ),
    _on_spark("fig9", "cores follow 6, 12, 6, 18 frames per second", 21.0, figure_9),
    _on_spark("fig10", "M/M/k against GI/G/k with arrivals in bulk", 8.0, figure_10),
    Figure(
        paper="drs",
        figure="table2",
        about="what a decision costs, against K_max",
        body="measured",
        minutes=0.2,
        run=table_2,
    ),
)
