"""The figures and tables of Elasticutor, section 5, that can be run."""

from tidegate.papers.figure import Figure

FIGURES: tuple[Figure, ...] = ()
