"""Two pipelines of one application on Spark that share too few cores, each with its own target."""

from typing import Any

from tidegate.apps.several_pipelines import CORES, SharedRun, run_together
from tidegate.benching import Aim, Bench, Options, at_least, at_most
from tidegate.spark.session import session


def together_body(options: Options) -> Bench:
    """Two pipelines with targets of 2 and 4 s, twice as many rows as all cores carry."""
    spark = session(f"local[{CORES}]", "bench-shed")
    seconds = 40.0 if options.quick else 90.0
    options.progress.expect(30.0 + seconds, takes_s=30.0 + seconds)
    options.progress.step("warming up", 30.0)
    run_together(spark, (2.0, 4.0), factor=0.3, seconds=30.0)
    options.progress.step("2 pipelines, targets of 2 and 4 s, 2 times capacity", seconds)
    found = run_together(spark, (2.0, 4.0), factor=2.0, seconds=seconds)
    spark.stop()
    off = max(abs(one.mean_latency_s / one.target_s - 1.0) for one in found)
    kept = [one.kept for one in found]
    return Bench(
        "shed",
        [_row(one) for one in found],
        [
            at_most("mean latency off its own target, worst pipeline", off, 0.15),
            at_least("share kept, least over most", min(kept) / max(kept), 0.6),
            at_most("cores asked for over those there are", sum(o.cores for o in found) / CORES, 1),
            at_least(
                "cores of the tighter target over the other's", found[0].cores / found[1].cores, 1
            ),
            Aim(
                "pipelines whose rows are counted exactly",
                sum(one.exact for one in found),
                f"= {len(found)}",
                all(one.exact for one in found),
            ),
        ],
    )


def _row(one: SharedRun) -> dict[str, Any]:
    return {
        "pipeline": one.name,
        "target_s": one.target_s,
        "mean_latency_s": round(one.mean_latency_s, 3),
        "cores": round(one.cores, 2),
        "kept": round(one.kept, 3),
        "offered": one.counts.offered,
        "shed": one.counts.shed,
        "exact": one.exact,
    }
