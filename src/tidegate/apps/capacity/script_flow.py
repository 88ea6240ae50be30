"""A pipeline of the user's own behind a source that is always full.

The script defines `flow(rows)`: a function that builds the pipeline on a streaming DataFrame. The
rows come from a sample of the real ones. Nothing else of the script is called.
"""

import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from tidegate.apps.capacity.full_flow import FullFlow, check_form, without_sinks
from tidegate.apps.capacity.sample_source import read_sample, sample_source
from tidegate.errors import AskedWrongly
from tidegate.pipelines.stream import Stream

FUNCTION = "flow"
_EXAMPLE = (
    "def flow(rows): return tg.pipeline('clicks', rows).keyed('per_ad', tg.count(), key='ad')"
)


def script_flow(script: Path, sample: Path, *, sinks: bool = False) -> FullFlow:
    """The pipeline that a script's `flow` builds, over the rows of a Parquet sample.

    With `sinks` it writes where the script says; otherwise its sinks drop all rows.
    """
    build = _function(script)
    read_sample(sample)

    def put(spark: SparkSession, size_file: Path, partitions: int) -> Stream:
        rows = sample_source(spark, sample, size_file=size_file, partitions=partitions)
        stream = build(rows)
        if not isinstance(stream, Stream):
            raise AskedWrongly(
                f"{FUNCTION}(rows) of {script} returned a {type(stream).__name__}; return the"
                " pipeline, as tg.pipeline(...) and its steps do"
            )
        check_form(stream, str(script))
        return stream if sinks else without_sinks(stream)

    return FullFlow(name=script.stem, behind=put)


def _function(script: Path) -> Callable[[Any], Any]:
    """The function `flow` of a script, which is loaded but not run as a program."""
    if not script.is_file():
        raise AskedWrongly(f"there is no script {script}; give the path of a Python file")
    # Workers import what lies beside the script, so this is before a session starts.
    sys.path.insert(0, str(script.resolve().parent))
    # The module is not registered by its name: then its functions are sent to workers as they are.
    spec = importlib.util.spec_from_file_location(script.stem, script)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = SparkContext._active_spark_context
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise AskedWrongly(
            f"{script} cannot be loaded ({type(error).__name__}: {error}); correct it first"
        ) from error
    started = SparkContext._active_spark_context
    if started is not None and started is not before:
        started.stop()
        raise AskedWrongly(
            f"{script} starts Spark when it is loaded; put that below"
            " `if __name__ == '__main__':`, and leave flow(rows) above it"
        )
    found: Any = getattr(module, FUNCTION, None)
    if not callable(found):
        raise AskedWrongly(
            f"{script} has no function {FUNCTION}(rows) that builds its pipeline; write one, such"
            f" as {_EXAMPLE}"
        )
    try:
        inspect.signature(found).bind(None)
    except TypeError:
        raise AskedWrongly(
            f"{FUNCTION} of {script} cannot be called with one streaming DataFrame; write it as"
            f" {FUNCTION}(rows)"
        ) from None
    build: Callable[[Any], Any] = found
    return build
