"""How long an HDFS is waited for that does not answer.

At a start the address may be wrong, which a person wants to hear soon. Once a NameNode has
answered, or in a task, which a driver has sent that had an answer, the address is right. Then a
NameNode that is silent has failed over or is restarted, which takes up to a minute.
"""

import itertools
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass

_PAUSES_S = (0.1, 0.5, 2.0)
"""How long to wait before each further try; the last one again and again."""


@dataclass(slots=True)
class Patiences:
    """How long to try."""

    first_s: float = 2.6
    """As long as no NameNode has answered this process."""
    failover_s: float = 90.0
    """From then on."""


PATIENCES = Patiences()
"""Those in force; tests shorten them."""


def in_worker() -> bool:
    """Whether this process is a Python worker of Spark."""
    return os.environ.get("SPARK_PYTHON_RUNTIME") == "PYTHON_WORKER"


def tries(patience_s: float) -> Iterator[int]:
    """The numbers of tries, with a pause before each but the first, until patience is over."""
    until_s = time.monotonic() + patience_s
    pauses_s = itertools.chain(_PAUSES_S, itertools.repeat(_PAUSES_S[-1]))
    yield 0
    for number, pause_s in enumerate(pauses_s, start=1):
        if time.monotonic() + pause_s > until_s:
            return
        time.sleep(pause_s)
        yield number
