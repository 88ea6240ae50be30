"""`tidegate plan --capacity`: the cores for a rate, by what a pipeline was measured to do."""

import math
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from scipy.special import ndtri

from tidegate.commands.output import print_json, print_line
from tidegate.errors import AskedWrongly
from tidegate.models.capacity.machines import check_target, machines_for
from tidegate.models.capacity.measured import MeasuredCapacity, read_capacity
from tidegate.models.capacity.online import OnlineCapacity
from tidegate.units import format_duration, parse_duration

FURTHEST = 4
"""Cores are planned up to so many times the most that were measured: further is guessing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityPlan:
    """A number of cores and what it processes, in rows per second."""

    cores: int
    expected_rows_per_s: float
    rows_per_s: float
    """What is reached with the probability `qos`; 0 where the samples vary too much to say."""
    qos: float
    latency_ms: float | None
    """The mean latency within which; None: however long batches take."""


def plan_capacity(
    file: Path,
    *,
    rate: float | None,
    cores: int | None,
    latency: str | None,
    qos: float,
    json: bool,
) -> None:
    """Print the fewest cores for a rate (MST eq. 8), or the rate that some cores sustain."""
    check_target(qos)
    if (rate is None) == (cores is None):
        raise AskedWrongly("with --capacity, plan needs --rate or --cores; give exactly one")
    latency_s = math.inf if latency is None else parse_duration(latency)
    found = planned(read_capacity(file), rate=rate, cores=cores, latency_s=latency_s, qos=qos)
    if json:
        print_json(asdict(found))
        return
    if found.rows_per_s <= 0.0:
        print_line(
            f"{found.cores} cores: the samples vary too much to promise any rate with probability"
            f" {qos:g}; {found.expected_rows_per_s:,.0f} rows/s expected. Measure more samples, or"
            " give a lower --qos."
        )
        return
    within = "" if latency is None else f" within a mean latency of {format_duration(latency_s)}"
    print_line(
        f"{found.cores} cores: {found.rows_per_s:,.0f} rows/s{within} with probability {qos:g};"
        f" {found.expected_rows_per_s:,.0f} expected"
    )


def planned(
    measured: MeasuredCapacity,
    *,
    rate: float | None,
    cores: int | None,
    latency_s: float,
    qos: float,
) -> CapacityPlan:
    """The plan for a rate, or for a number of cores."""
    measured.refuse_overhead(latency_s)
    most = FURTHEST * measured.most_cores
    model = OnlineCapacity(measured.within(latency_s), max_machines=most, curve=measured.curve)
    if cores is None:
        cores = _fewest(rate or 0.0, model, most, qos)
    elif not 1 <= cores <= most:
        raise AskedWrongly(
            f"--cores {cores}: the capacity file has up to {measured.most_cores} cores; give 1 to"
            f" {most}, or measure more"
        )
    least_s = measured.least_latency_s(cores)
    if latency_s < least_s:
        raise AskedWrongly(
            f"--latency {format_duration(latency_s)}: even without rows, a micro-batch on {cores}"
            f" cores takes too long for it; give {format_duration(least_s, round_up=True)} or more"
        )
    return CapacityPlan(
        cores=cores,
        expected_rows_per_s=float(model.mean([cores])[0]),
        rows_per_s=_sure(model, cores, qos),
        qos=qos,
        latency_ms=None if latency_s == math.inf else 1e3 * latency_s,
    )


def _fewest(rate: float, model: OnlineCapacity, most: int, qos: float) -> int:
    if not 0.0 < rate < math.inf:
        raise AskedWrongly(f"--rate {rate:g}: give a number of rows per second above 0")
    found = machines_for(rate, qos, model, most)
    reached = max(_sure(model, m, qos) for m in range(1, most + 1))
    if _sure(model, found, qos) < rate:
        raise AskedWrongly(
            f"no number of cores up to {most} sustains {rate:,.0f} rows/s with probability"
            f" {qos:g}; {reached:,.0f} rows/s are reached: lower the rate, or measure more cores"
        )
    return found


def _sure(model: OnlineCapacity, cores: int, qos: float) -> float:
    """The rate below which eq. 8 holds for so many cores: tau - z sigma, and never below 0."""
    m = np.array([cores])
    return max(float((model.mean(m) - ndtri(qos) * np.sqrt(model.variance(m)))[0]), 0.0)
