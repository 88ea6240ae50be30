"""All figures and tables with results of the five papers."""

from tidegate.papers.drs import figures as drs
from tidegate.papers.elasticutor import figures as elasticutor
from tidegate.papers.figure import Figure
from tidegate.papers.flink_er import figures as flink_er
from tidegate.papers.mst import figures as mst
from tidegate.papers.overload import figures as overload

FIGURES: tuple[Figure, ...] = (
    *drs.FIGURES,
    *elasticutor.FIGURES,
    *overload.FIGURES,
    *mst.FIGURES,
    *flink_er.FIGURES,
)
"""In the order of the papers."""
