"""How much memory Spark's settings leave to the Python workers of an executor.

YARN ends a container that has more than was asked for. That is the heap and an overhead, in which
Python has its place beside other needs of Java, and `spark.executor.pyspark.memory` on top. Other
cluster managers limit the process itself, which its workers can see.
"""

import re
from collections.abc import Callable

_UNITS = {"": 2**20, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_LEAST_OVERHEAD = 384 * 2**20
_FACTOR = 0.1
_JAVA_SHARE = 0.25
"""Of the overhead: class data, threads and buffers of Java."""


def python_limit_bytes(master: str, setting: Callable[[str], str | None]) -> int | None:
    """The memory of an executor's Python workers on this master; None where nothing is known."""
    if master != "yarn":
        return None
    heap = size_of(setting("spark.executor.memory") or "1g")
    factor = float(setting("spark.executor.memoryOverheadFactor") or _FACTOR)
    least = size_of(setting("spark.executor.minMemoryOverhead") or "") or _LEAST_OVERHEAD
    overhead = size_of(setting("spark.executor.memoryOverhead") or "")
    overhead = overhead or max(int(factor * heap), least)
    return int((1.0 - _JAVA_SHARE) * overhead) + size_of(
        setting("spark.executor.pyspark.memory") or ""
    )


def size_of(text: str) -> int:
    """A size as Spark writes it (`512m`, `2g`; without a unit mebibytes), in bytes; 0 if empty."""
    found = re.fullmatch(r"\s*(\d+)\s*([bkmgt]?)b?\s*", text.lower())
    return int(found[1]) * _UNITS[found[2]] if found else 0
