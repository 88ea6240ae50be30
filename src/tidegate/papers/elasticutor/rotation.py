"""How runs are ordered that are compared with each other: warm, and each first in its turn.

Spark gets faster for minutes, so whoever is measured first would lose.
"""

from collections.abc import Iterator

from pyspark.sql import SparkSession

from tidegate.apps.micro.options import MicroOptions
from tidegate.apps.micro.throughput import measure_throughput
from tidegate.apps.paradigms import OURS
from tidegate.papers.elasticutor.sessions import TASKS

_WARM_UP_S = 6.0


def warm_up(spark: SparkSession) -> None:
    """Run for some seconds, so that the first judged run finds Spark warm."""
    measure_throughput(spark, OURS, MicroOptions(), tasks=TASKS, seconds=_WARM_UP_S)


def rotated(paradigms: tuple[str, ...], turn: int) -> tuple[str, ...]:
    """The order of a turn: another one is the first each time."""
    first = turn % len(paradigms)
    return (*paradigms[first:], *paradigms[:first])


def in_turns(paradigms: tuple[str, ...], rounds: int) -> Iterator[str]:
    """All paradigms, as often as there are rounds."""
    for turn in range(rounds):
        yield from rotated(paradigms, turn)
