"""The figures and tables of MST, sections IV and V, that can be run."""

from functools import partial

from tidegate.papers.figure import Figure, on_spark, simulated
from tidegate.papers.mst.capacity_files import CAPACITY_OPTION
from tidegate.papers.mst.contenders import LATENCY_OPTION
from tidegate.papers.mst.grep_week import figure_10
from tidegate.papers.mst.loads import LOADS, OPTIONS
from tidegate.papers.mst.measured_curves import APP_OPTION, figure_6
from tidegate.papers.mst.orders import table_1
from tidegate.papers.mst.peaks import table_2
from tidegate.papers.mst.policies import figures_7_and_8
from tidegate.papers.mst.targets import figure_9

_WITH_LATENCY = {**OPTIONS, **LATENCY_OPTION}
_GREP = {LOADS[0].option: OPTIONS[LOADS[0].option], **LATENCY_OPTION}
_simulated = partial(simulated, "mst")

_SAME_RUNS = {
    "table3": "what each policy uses, by the runs of fig7",
    "fig7": "QoS and cost of policies 0 to 7, averaged",
    "fig8": "the same by application, by the runs of fig7",
}
FIGURES: tuple[Figure, ...] = (
    on_spark(
        "mst",
        "fig6",
        "throughput of eight applications, measured and fitted",
        20.0,
        figure_6,
        options=APP_OPTION,
    ),
    _simulated(
        "table1", "ARMA orders of the three workloads, by AIC", 0.1, table_1, options=OPTIONS
    ),
    Figure(
        paper="mst",
        figure="table2",
        about="peak loads of the applications, and what fig6 measured",
        body="measured",
        minutes=0.1,
        options=CAPACITY_OPTION,
        run=table_2,
    ),
    *(
        _simulated(
            figure,
            about,
            15.0,
            figures_7_and_8,
            options=_WITH_LATENCY,
            also=tuple(one for one in _SAME_RUNS if one != figure),
        )
        for figure, about in _SAME_RUNS.items()
    ),
    _simulated("fig9", "QoS and cost against the QoS target rho", 8.0, figure_9, options=OPTIONS),
    _simulated(
        "fig10", "load, machines and backlog of Grep over a week", 3.0, figure_10, options=_GREP
    ),
)
"""Figures 1 to 4 explain, and figure 5 is an input."""
