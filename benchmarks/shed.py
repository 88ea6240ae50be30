"""Holding latency by shedding: the model, feedback, and the overload paper's fixed gain.

`--body sim` (the default) runs the paper's load in two simulators, the paper's engine and a
pipeline of micro-batches. `--body spark` overloads a pipeline on Spark, and `--body together` two
pipelines of one application. `--picture FILE.svg` draws the simulated run with a target of 2 s.
"""

from pathlib import Path

from tidegate.benching import Bench, Options
from tidegate.errors import AskedWrongly, nearest

OPTIONS = ("body", "picture")
BODIES = ("sim", "spark", "together")


def run(options: Options) -> Bench:
    """Run the benchmark for one body. Only that one is imported: the simulators need no Spark."""
    body = options.extra.get("body", "sim")
    if body not in BODIES:
        raise AskedWrongly(f"there is no body '{body}'{nearest(body, BODIES)}")
    for name in options.extra:
        if name not in OPTIONS:
            raise AskedWrongly(f"bench shed has no option '--{name}'{nearest(name, OPTIONS)}")
    if body == "spark":
        from benchmarks.shed_bodies.on_spark import spark_body

        return spark_body(options)
    if body == "together":
        from benchmarks.shed_bodies.together import together_body

        return together_body(options)
    from benchmarks.shed_bodies.simulated import draw, simulated_body

    if "picture" in options.extra:
        draw(Path(options.extra["picture"]))
        options.say(f"wrote {options.extra['picture']}")
    return simulated_body(options)
