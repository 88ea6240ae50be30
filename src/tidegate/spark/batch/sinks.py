"""Calls the sink of a micro-batch, retries it if it may, and says in one sentence why it failed.

A retry gets the same DataFrame and the same batch id. So a sink that honours the batch id can be
tried any number of times.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import DataFrame

from tidegate.errors import TidegateError
from tidegate.pipelines.graph import Sink
from tidegate.spark.batch.failure import one_line, plain_message
from tidegate.spark.owner.epochs import Fenced
from tidegate.spark.sinks.attempt import Attempt
from tidegate.spark.sinks.of_format import FormatSink

log = logging.getLogger("tidegate")

_FIRST_WAIT_S = 1.0
_LONGEST_WAIT_S = 30.0
_LOOK_EVERY_S = 0.1


class SinkFailed(TidegateError):
    """A sink raised an error; the batch was not committed, and the next start repeats it."""


def write_sink(
    node: Sink,
    frame: DataFrame,
    attempt: Attempt,
    into: FormatSink | None = None,
    *,
    stopping: Callable[[], bool] = lambda: False,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Write the output of a batch to a sink, with as many retries as the sink allows.

    `into` writes to a format; without it, the sink is a function. The first retry comes after a
    second, and each further one after twice as long, up to half a minute. `attempt.check` is called
    before every try: it raises if another driver has the checkpoint, and has called the sink with
    this batch and later ones meanwhile. A run that is `stopping` retries nothing.
    """
    wait_s = _FIRST_WAIT_S
    for tried in range(1, node.retries + 2):
        attempt.check()
        try:
            if node.write is not None:
                node.write(frame, attempt.batch_id)
            elif into is not None:
                into.write(frame, attempt)
            return
        except Fenced:
            raise
        except (Exception, SystemExit) as error:
            if plain_message(str(error)) is not None:
                raise  # an operator failed while the sink read its rows
            what = f"sink '{node.name}' failed in batch {attempt.batch_id}: {one_line(error)}"
            times = "" if tried == 1 else f" (tried {tried} times)"
            failure = SinkFailed(f"{what}{times}; the batch repeats at the next start")
            failure.__cause__ = error
        if tried > node.retries:
            raise failure
        more = f"retry {tried} of {node.retries} follows in {wait_s:g} s"
        log.warning("pipeline '%s': %s; %s", attempt.pipeline, what, more)
        _pause(wait_s, stopping, sleep)
        if stopping():
            raise failure
        wait_s = min(2.0 * wait_s, _LONGEST_WAIT_S)
        attempt = replace(attempt, again=True)


def _pause(wait_s: float, stopping: Callable[[], bool], sleep: Callable[[float], None]) -> None:
    left_s = wait_s
    while left_s > 0 and not stopping():
        sleep(min(left_s, _LOOK_EVERY_S))
        left_s -= _LOOK_EVERY_S
