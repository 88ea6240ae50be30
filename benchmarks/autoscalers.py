"""Seven policies on Nexmark's Q3, Q5 and Q11 under six loads: time within target, cost, changes.

The loads are those of delftdata/espa-autoscaling (DEBS 2024), whose minutes take two seconds here
(`--minute 2`), at a twentieth of the rates; operators wait for every row. `--body sim` simulates
them under the same controllers. `--queries q3,q5`, `--loads cosine,random` and
`--policies latency,ds2` run some of them, `--seconds 60` only their beginning, `--seed 2` others
of their kind. Each result is kept in a file as it comes (`--keep FILE`), and what is in it is not
run again. `--picture FILE.svg` draws what is kept, and `--records DIR` keeps the records of runs.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.autoscalers_bodies import judged, kept
from benchmarks.autoscalers_bodies.contest import (
    LOADS,
    MINUTE_S,
    OURS,
    POLICIES,
    QUERIES,
    SECONDS,
)
from benchmarks.autoscalers_bodies.kept import Asked, Result

from tidegate.benching import Bench, Options
from tidegate.control.record import Record
from tidegate.errors import AskedWrongly, check_options, nearest
from tidegate.units import counted
from tidegate.workload.patterns import SEED

OPTIONS = (
    *("body", "queries", "loads", "policies", "seconds", "minute", "seed"),
    *("keep", "picture", "records"),
)
BODIES = ("sim", "spark")
QUICK_S = 60.0
_AROUND_S = {"sim": 0.0, "spark": 25.0}
"""What a run takes besides its load: on Spark its start, its end and its verification."""
_SIMULATED_S = 0.03
"""Seconds that a simulated second takes, about."""

Runner = Callable[[Asked], tuple[Result, Sequence[Record]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """What was asked for."""

    runs: tuple[Asked, ...]
    file: Path
    picture: Path | None
    records: Path | None

    @property
    def body(self) -> str:
        """Where they run."""
        return self.runs[0].body


def contest_of(options: Options) -> Contest:
    """The runs that the options ask for, by query, load and policy; wrong ones are refused."""
    extra = options.extra
    check_options(extra, OPTIONS, "bench autoscalers")
    body = extra.get("body", "spark")
    if body not in BODIES:
        raise AskedWrongly(f"there is no body '{body}'{nearest(body, BODIES)}")
    seconds = _number(extra, "seconds", QUICK_S if options.quick else SECONDS, 10.0, 86_400.0)
    minute_s = _number(extra, "minute", MINUTE_S, 0.1, 600.0)
    seed = int(_number(extra, "seed", float(SEED), 0.0, 2.0**31))
    runs = tuple(
        Asked(
            body=body,
            query=query,
            load=load,
            policy=policy,
            seconds=seconds,
            minute_s=minute_s,
            seed=seed,
        )
        for query in _names(extra, "queries", QUERIES)
        for number, load in enumerate(_names(extra, "loads", LOADS))
        for policy in _turned(_names(extra, "policies", POLICIES), number)
    )
    picture, records = extra.get("picture"), extra.get("records")
    return Contest(
        runs=runs,
        file=Path(extra.get("keep", f"out/autoscalers-{body}.jsonl")),
        picture=None if picture is None else Path(picture),
        records=None if records is None else Path(records),
    )


def run(options: Options) -> Bench:
    """Run what is not in the file yet, then judge all that was asked for."""
    contest = contest_of(options)
    there = kept.read(contest.file)
    left = kept.left(contest.runs, there)
    done = len(contest.runs) - len(left)
    if done:
        options.say(
            f"{done} of {counted(len(contest.runs), 'run')} are in {contest.file} and are not run"
            " again; remove the file to begin anew"
        )
    if left:
        _run_all(contest, left, there, options)
    found = judged.cells(contest.runs, there)
    for cell in found:
        if OURS in cell.by_policy and len(cell.by_policy) > 1:
            options.say(cell.words)
    if contest.picture is not None:
        from benchmarks.autoscalers_bodies.picture import draw

        draw(found, contest.picture)
        options.say(f"wrote {contest.picture}")
    queries = list(dict.fromkeys(one.query for one in contest.runs))
    results = [row for cell in found for row in cell.rows()]
    return Bench("autoscalers", results, judged.aims(queries, found))


def _run_all(
    contest: Contest, left: Sequence[Asked], there: dict[Asked, Result], options: Options
) -> None:
    one_s = left[0].seconds * (1.0 if contest.body == "spark" else _SIMULATED_S)
    one_s += _AROUND_S[contest.body]
    options.progress.expect(len(left), takes_s=one_s * len(left))
    with _runner(contest.body, left[0], options) as runner:
        for asked in left:
            options.progress.step(asked.words)
            result, records = runner(asked)
            kept.keep(contest.file, result)
            there[asked] = result
            if contest.records is not None:
                _keep_records(contest.records, asked, records)


@contextmanager
def _runner(body: str, first: Asked, options: Options) -> Iterator[Runner]:
    """What runs one of them; for Spark a session, which is stopped at the end."""
    if body == "sim":
        from benchmarks.autoscalers_bodies.simulated import run_simulated

        yield run_simulated
        return
    from benchmarks.autoscalers_bodies.contest import CORES
    from benchmarks.autoscalers_bodies.on_spark import run_on_spark, warm_up

    from tidegate.spark.session import session

    spark = session(f"local[{CORES[1] + 2}]", "bench-autoscalers")
    try:
        options.progress.doing("warming up: the first one is to find the JVM as the last one does")
        warm_up(spark, first)
        yield lambda asked: run_on_spark(spark, asked)
    finally:
        spark.stop()


def _keep_records(directory: Path, asked: Asked, records: Sequence[Record]) -> None:
    """As a checkpoint has them, so that `tidegate explain` and `tidegate whatif` read them."""
    place = directory / "-".join((asked.query, asked.load, asked.policy.replace(" ", "-")))
    place.mkdir(parents=True, exist_ok=True)
    lines = "".join(record.to_json() + "\n" for record in records)
    (place / "records.jsonl").write_text(lines, encoding="utf-8")


def _names(extra: Mapping[str, str], option: str, known: Any) -> list[str]:
    """The names of an option, in the order of the contest; all without it."""
    wanted = extra[option].split(",") if option in extra else list(known)
    for name in wanted:
        if name not in known:
            raise AskedWrongly(f"--{option}: there is no '{name}'{nearest(name, known)}")
    return [name for name in known if name in wanted]


def _turned(policies: Sequence[str], number: int) -> list[str]:
    """Another policy begins under each load: a machine is not equally fast all the time."""
    first = number % len(policies)
    return [*policies[first:], *policies[:first]]


def _number(
    extra: Mapping[str, str], option: str, default: float, least: float, most: float
) -> float:
    try:
        value = float(extra.get(option, default))
    except ValueError:
        value = float("nan")
    if not least <= value <= most:
        raise AskedWrongly(
            f"--{option} {extra[option]} is not possible; give {least:g} to {most:g}"
        )
    return value
