"""Table II: which load each application gets, and its peak; and what was measured on Spark."""

from collections.abc import Mapping

import numpy as np

from tidegate.benching import at_most
from tidegate.models.capacity.measured import MeasuredCapacity
from tidegate.papers.figure import Asked, Compared, Findings
from tidegate.papers.mst.capacity_files import kept_capacities
from tidegate.papers.mst.loads import LOADS
from tidegate.papers.mst.spark_applications import row_bytes
from tidegate.sim.capacity.applications import APPLICATIONS

PAPERS_PEAKS = {
    "grep": 32.0,
    "rolling-count": 10.0,
    "unique-visitor": 48.0,
    "page-view": 46.0,
    "data-clean": 5.0,
    "vht": 49.0,
    "rolling-hashtag-count": 200.0,
    "rolling-flight-distances": 0.83,
}
"""MB/s. Table II has none for the flights, whose load is not scaled; V-A4 says 830 KB/s."""
MEGABYTE = 1e6


def table_2(asked: Asked) -> Findings:
    """The peaks of the backtests, and what the kept capacity files say of each application."""
    return told(kept_capacities(asked.extra.get("capacity")))


def told(measured: Mapping[str, MeasuredCapacity]) -> Findings:
    """The table; an application without a file has not been measured here."""
    rows = []
    for load in LOADS:
        for name in load.applications:
            app = APPLICATIONS[name]
            machines = int(np.searchsorted(app.mean(), app.peak, side="right")) + 1
            rows.append(
                Compared(
                    f"{name}, {load.name}: peak, MB/s",
                    PAPERS_PEAKS[name],
                    f"{app.peak:g} on {machines} machines of the modelled curve",
                )
            )
            if name in measured:
                rows.append(
                    Compared(f"{name}: measured on Spark, MB/s", None, _most(name, measured[name]))
                )
    other = sum(APPLICATIONS[name].peak != peak for name, peak in PAPERS_PEAKS.items())
    missing = [name for name in APPLICATIONS if name not in measured]
    return Findings(
        compared=tuple(rows),
        aims=(at_most("peaks that differ from the paper's", other, 0),),
        notes=(
            "The paper's peak is what the largest minute of a load is scaled to. It does not say"
            " how many machines sustain it.",
            "Measured is the throughput on the most cores that figure 6 measured. Where operators"
            " were stretched, their time per row is modelled after the paper's peak.",
            *([f"Not measured yet (fig6): {', '.join(missing)}."] if missing else []),
        ),
    )


def _most(name: str, measured: MeasuredCapacity) -> str:
    cores = measured.most_cores
    rate = float(np.mean([one.rows_per_s for one in measured.samples if one.cores == cores]))
    size = row_bytes(name)
    stretched = ", stretched" if measured.stretched else ""
    return (
        f"{rate * size / MEGABYTE:.3g} on {cores} cores{stretched}"
        f" ({rate:,.0f} rows/s of {size:.0f} bytes)"
    )
