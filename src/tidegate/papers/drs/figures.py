"""The figures and tables of DRS, section V, that can be run."""

from tidegate.papers.figure import Figure

FIGURES: tuple[Figure, ...] = ()
