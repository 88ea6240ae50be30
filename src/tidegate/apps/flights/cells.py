"""Cells of a grid as keys: each pair of close flights meets in exactly one cell.

The grid divides space into cubes that are wider than the threshold, so close flights are in the
same cell or in neighbouring ones. A flight is sent to its own cell, where it is at home, and as a
visitor to those neighbours that it is close enough to. Of two neighbouring cells only the later one
gets visitors from the other, so no pair is found twice.
"""

from collections.abc import Callable
from itertools import product

import numpy as np
import pyarrow as pa

from tidegate.apps.flights.options import FlightOptions
from tidegate.apps.flights.predict import predicted
from tidegate.apps.flights.sphere import Ints
from tidegate.pipelines.derived import Derived
from tidegate.pipelines.functions.times import microseconds_of

PLACE = "cell long, tick long, flight long, home boolean, x long, y long, z long"
"""A flight in a cell at a tick, the number of an interval since 1970; its place in metres."""
WIDTH = 4
"""How many times the threshold a cell is wide. In wider ones flights have more others to be
compared with; in narrower ones they visit more neighbours."""
LATER = np.array([step for step in product((-1, 0, 1), repeat=3) if step > (0, 0, 0)])
"""The steps to 13 of the 26 neighbours; those to the others are the opposite ones."""
_OFFSET, _BITS = 1 << 19, 20
"""Steps of a cell from the globe's centre fit into 20 bits."""


def cell_map(options: FlightOptions) -> Callable[[pa.Table], Derived]:
    """A map from the last reports of windows to predicted places, in all cells that need them."""

    def cells(rows: pa.Table) -> Derived:
        end_us, _ = microseconds_of(rows["window_end"])
        where = predicted(rows, end_us + options.ahead_s * 1_000_000)
        cell, parents, home = in_cells(where, options.near_m)
        at = pa.array(parents)
        columns = {name: where[parents, axis] for axis, name in enumerate("xyz")}
        made = pa.table(
            {
                "cell": cell,
                "tick": (end_us // (options.every_s * 1_000_000))[parents],
                "flight": rows["flight"].take(at),
                "home": home,
                **columns,
            }
        )
        return Derived(made, parents)

    return cells


def in_cells(where: Ints, near_m: int) -> tuple[Ints, Ints, np.ndarray]:
    """Cells, the row of the place that is sent to each, and whether it is at home there."""
    width = WIDTH * near_m
    own = where // width
    first = own * width
    cells, parents = [own], [np.arange(len(where))]
    for step in LATER:
        # How far a place is from the neighbour: nothing along an axis on which both are alike.
        before, behind = where - first + 1, first + width - where
        gap = np.where(step < 0, before, np.where(step > 0, behind, 0))
        visits = np.flatnonzero((gap * gap).sum(axis=1) <= near_m * near_m)
        cells.append(own[visits] + step)
        parents.append(visits)
    of = np.concatenate(parents)
    return numbered(np.concatenate(cells)), of, np.arange(len(of)) < len(where)


def numbered(cells: Ints) -> Ints:
    """One number for each cell."""
    shifted = cells + _OFFSET
    number: Ints = (shifted[:, 0] << 2 * _BITS) | (shifted[:, 1] << _BITS) | shifted[:, 2]
    return number
