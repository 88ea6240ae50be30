"""A run of the contest on Spark: the query as `tidegate app` runs it, with its answers verified."""

import time
from collections.abc import Sequence
from dataclasses import replace

from benchmarks.autoscalers_bodies.contest import (
    CORES,
    HOT_EVERY,
    POLICIES,
    STATIC,
    TARGET_S,
)
from benchmarks.autoscalers_bodies.kept import Asked, Result
from benchmarks.autoscalers_bodies.simulated import result_of
from benchmarks.autoscalers_bodies.worlds import setting_of
from pyspark.sql import SparkSession

from tidegate.apps.application import Settings
from tidegate.apps.nexmark.flow import nexmark_application
from tidegate.apps.run_application import ApplicationRun, run_application
from tidegate.control.bounds import Bounds
from tidegate.control.record import Record
from tidegate.control.target import Target
from tidegate.errors import TidegateError
from tidegate.sim.microbatch.recorded import recorded_world

WARM_UP_S = 30.0
"""How long the first query runs before it is measured, so that nobody pays for a cold JVM."""


def run_on_spark(spark: SparkSession, asked: Asked) -> tuple[Result, Sequence[Record]]:
    """Run one policy under one load until every event is processed, and verify the answers."""
    begun_s = time.perf_counter()
    ran = _run(spark, asked, POLICIES[asked.policy], asked.seconds)
    if ran.verdict is None:
        raise TidegateError(f"{asked.words}: it was ended before all rows were processed")
    least = recorded_world(ran.records).oracle(Target(TARGET_S), Bounds(*CORES))
    took_s = time.perf_counter() - begun_s
    return result_of(asked, ran.records, least, ran.verdict.correct, took_s), ran.records


def warm_up(spark: SparkSession, asked: Asked) -> None:
    """Run the query of the first run for a while, on all cores that it may have."""
    _run(spark, replace(asked, policy=STATIC), POLICIES[STATIC], min(WARM_UP_S, asked.seconds))


def _run(spark: SparkSession, asked: Asked, policy: str, seconds: float) -> ApplicationRun:
    setting = setting_of(asked.query, asked.load, asked.seconds, asked.minute_s, asked.seed)
    contested, load = setting.contested, setting.load
    query = replace(contested.query, stretched_s=contested.stretched_s)
    application = nexmark_application(query, str(load), contested.picking_s)
    settings = Settings(
        rate=load,
        seconds=seconds,
        seed=asked.seed,
        stretch=True,
        extra={"hot_every": str(HOT_EVERY)},
    )
    cores: int | tuple[int, int] = CORES
    if asked.policy == STATIC:
        cores = setting.peak_cores
    return run_application(
        spark,
        application,
        settings,
        target=f"{TARGET_S:g} seconds",
        cores=cores,
        policy=policy,
    )
