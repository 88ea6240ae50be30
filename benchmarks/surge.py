"""The demo's load under five policies with the same seed: time within target and core-seconds.

Operators sleep (as if they called a slow service), so that up to 16 tasks speed up on a machine
with few cores. `static peak` has the cores that the micro-batch model gives for the highest load,
and `static mean` those for the mean load. The oracle is the least that holds the target when the
future is known, with the costs that the run of our policy learned. `tidegate whatif` is tried on
the records of that run: how far its simulation is from what really happened.

A run has little more than a minute that is judged, and one slow micro-batch in it costs several
points. So our policy runs three times (`--runs 3`), and the aims are for the mean of its runs.
"""

from statistics import fmean
from typing import Any

from tidegate.apps.surge import CORES, HIGH, LOW, TARGET_S, WARM_S, peak_cores, run_surge
from tidegate.benching import Aim, Bench, Options, at_least, at_most
from tidegate.commands.recorded_assembly import assembly_of_run
from tidegate.commands.whatif_answer import Answer, answer
from tidegate.sim.microbatch.oracle import Oracle
from tidegate.spark.session import session
from tidegate.view.summary import summarise

_WARM_UP_S = 30.0


def run(options: Options) -> Bench:
    """Run each policy in turn, on the same session."""
    seconds = 60.0 if options.quick else 90.0
    peak = peak_cores()
    mean = max(CORES[0], round(peak * (LOW + (1 / 5 + 1 / 15) * (HIGH - LOW)) / HIGH))
    again = int(options.extra.get("runs", 1 if options.quick else 3))
    contenders: list[tuple[str, str, int | tuple[int, int]]] = [
        *[("latency", "latency", CORES)] * again,
        ("static peak", "static", peak),
        ("static mean", "static", mean),
        ("threshold", "threshold", CORES),
        ("spark dynamic allocation", "spark-dynamic-allocation", CORES),
    ]
    spark = session("local[16]", "bench-surge")
    runs: list[dict[str, Any]] = []
    hindsight: list[Answer] = []
    options.progress.expect(_WARM_UP_S + seconds * len(contenders))
    options.progress.step(
        "warming up: the first contender is to find the JVM as the last one does", _WARM_UP_S
    )
    run_surge(spark, _WARM_UP_S, policy="static", cores=peak)
    for name, policy, cores in contenders:
        options.progress.step(f"{name}: {seconds:.0f} s of load", seconds)
        surge = run_surge(spark, seconds, policy=policy, cores=cores)
        found = summarise(surge.records, warm_up_s=WARM_S, static_cores=peak).document()
        runs.append(
            {
                "policy": name,
                "within_target": found["within_target"],
                "p95_ms": found["p95_ms"],
                "core_seconds": found["core_seconds"],
                "changes": found["changes"],
                "verified": surge.verified,
            }
        )
        if name == "latency":
            assembly = assembly_of_run(surge.records[0], None, None, None)
            hindsight.append(answer(surge.records, assembly, assembly, warm_up_s=WARM_S))
    results = list(runs)
    for one in hindsight:
        results += [
            {
                "policy": "oracle",
                "within_target": round(one.oracle.within, 4),
                "core_seconds": round(one.oracle.core_seconds, 1),
            },
            {"policy": "whatif, as it was", **one.again.document()},
        ]
    by_name = {row["policy"]: row for row in runs}
    ours = {
        what: fmean(row[what] for row in runs if row["policy"] == "latency")
        for what in ("within_target", "core_seconds")
    }
    still = by_name["static peak"]
    elastic = [by_name["threshold"], by_name["spark dynamic allocation"]]
    better = sum(
        ours["within_target"] >= other["within_target"]
        and ours["core_seconds"] <= other["core_seconds"]
        for other in elastic
    )
    as_good = sum(
        other["within_target"] >= ours["within_target"]
        and other["core_seconds"] <= ours["core_seconds"]
        for other in elastic
    )
    share = ours["core_seconds"] / still["core_seconds"]
    return Bench(
        "surge",
        results,
        [
            at_least(f"seconds within {TARGET_S:g} s", ours["within_target"], 0.98),
            *against_oracle(ours["core_seconds"], *(one.oracle for one in hindsight)),
            at_most("core-seconds over static peak's", share, 0.6),
            at_most("whatif: points off", fmean(abs(one.off_points) for one in hindsight), 3.0),
            at_most(
                "whatif: core-seconds off", fmean(abs(one.off_cost) for one in hindsight), 0.07
            ),
            at_least("elastic alternatives beaten on both", better, len(elastic)),
            at_most("elastic alternatives as good for as little", as_good, 0),
            Aim(
                "states equal a recomputation",
                sum(row["verified"] for row in runs),
                f"= {len(runs)}",
                all(row["verified"] for row in runs),
            ),
        ],
    )


def against_oracle(core_seconds: float, *least: Oracle) -> list[Aim]:
    """How near to the oracle of the same runs, which has to hold the target itself.

    Where no cores hold it, the oracle takes all of them, and is easy to come near to.
    """
    return [
        at_most(
            "core-seconds over the oracle's",
            core_seconds / fmean(one.core_seconds for one in least),
            1.25,
        ),
        at_least("the oracle's seconds within target", min(one.within for one in least), 0.99),
    ]
