"""Turns the options of `start` or `attach` into an `Assembly`, and refuses wrong ones."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.latency.options import LatencyOptions
from tidegate.control.limits import Limits, excluded_periods
from tidegate.control.names import DEFAULT_POLICY, DEFAULT_SHEDDER, policy_name, shedder_name
from tidegate.control.shedding.classes import Worth
from tidegate.control.target import Target
from tidegate.errors import AskedWrongly
from tidegate.models.capacity.measured import read_capacity
from tidegate.spark.loop.negotiate import (
    cores_per_executor,
    cores_there,
    master_cores,
    refuse_dynamic_allocation,
    task_cpus,
)
from tidegate.spark.master import parse_master
from tidegate.spark.options import Count
from tidegate.units import parse_duration


def assembly_of(
    session: SparkSession,
    given: Mapping[str, Any],
    *,
    classes: Mapping[str, Worth] | None = None,
) -> Assembly:
    """The assembly for these options (all filled in), checked against the session's master."""
    master = parse_master(str(session.sparkContext.master))
    per_executor = 1 if master.in_one_process else cores_per_executor(session)
    bounds = bounds_of(given["cores"], given["executors"], session, per_executor)
    if not master.in_one_process:
        refuse_dynamic_allocation(session)
    shed = given.get("shed", False)
    by = DEFAULT_SHEDDER if shed is True else shed
    capacity = given.get("capacity")
    between, first = given["between_changes"], given["first_change"]
    return Assembly(
        target=Target(parse_duration(given["target"]), given["percentile"]),
        bounds=bounds,
        latency=LatencyOptions(
            catch_up_s=parse_duration(given["catch_up"]),
            scale_in_after_s=parse_duration(given["scale_in_after"]),
        ),
        limits=Limits(
            t_ra_s=0.0 if between is None else parse_duration(between),
            first_after_s=0.0 if first is None else parse_duration(first),
            dry_run=given["dry_run"],
            excluded=excluded_periods(given["excluded"]),
        ),
        tick_s=parse_duration(given["tick"]),
        cores_per_executor=per_executor,
        shed=shedder_name(by) if by else None,
        shed_backlog=given.get("shed_backlog", False),
        classes=classes or {},
        policy=policy_name(given.get("policy", DEFAULT_POLICY)),
        capacity=None if capacity is None else read_capacity(capacity),
    )


def bounds_of(
    cores: Count, executors: Count, session: SparkSession, cores_per_executor: int
) -> Bounds:
    """The fewest and the most cores, given as cores or as executors."""
    there = cores_there(session)
    if cores is not None and executors is not None:
        raise AskedWrongly(
            f"cores={cores} and executors={executors}: both set the same bounds; give one of them"
        )
    if executors is not None:
        least, most = _pair("executors", executors)
        if there is not None and most * cores_per_executor > there:
            raise AskedWrongly(
                f"executors=({least}, {most}), but the master has {there // cores_per_executor};"
                " lower the maximum or start with a larger master"
            )
        return Bounds(least * cores_per_executor, most * cores_per_executor)
    if cores is None:
        if there is None:
            raise AskedWrongly(
                "give cores=(least, most) or executors=(least, most): a cluster does not tell"
                " how many it has"
            )
        return Bounds(1, there)
    least, most = _pair("cores", cores)
    each = task_cpus(session)
    known = master_cores(session)
    if known is not None and most > known:
        raise AskedWrongly(
            f"cores=({least}, {most}), but the master has {known}; lower the maximum or start with "
            "a larger master"
        )
    if most < cores_per_executor * each:
        what = "one executor has" if cores_per_executor > 1 else "spark.task.cpus gives a task"
        raise AskedWrongly(
            f"cores=({least}, {most}), but {what} {cores_per_executor * each}; raise the maximum"
            " to that at least"
        )
    return Bounds(-(-least // each), most // each)


def _pair(name: str, given: int | tuple[int, int]) -> tuple[int, int]:
    least, most = (given, given) if isinstance(given, int) else given
    if not 1 <= least <= most:
        raise AskedWrongly(f"{name}=({least}, {most}): give a minimum from 1 up to the maximum")
    return least, most
