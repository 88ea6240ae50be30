"""The releases of PySpark that Tidegate runs on; pyproject.toml has the same range.

The oldest is 4.2, which tells a Python source from where on it is to read, and how much. What older
releases lack is not one thing: without it the segment behind a channel cannot be kept from reading
all of a backlog at once, the warm-up cannot end after one batch, and `tg.arrivals` cannot go on
where a checkpoint ended. `tests/unit/spark/test_releases.py` holds the range together, and
CONTRIBUTING.md says how to try another release.
"""

import warnings

from tidegate.errors import TidegateError

FROM = (4, 2)
TRIED_BELOW = (4, 4)
"""The newest release that was tried is older than this; newer ones are warned of, once."""
BELOW = (5,)
"""A new major release may change what it likes."""
RANGE = f">={FROM[0]}.{FROM[1]},<{BELOW[0]}"
TRIED = f">={FROM[0]}.{FROM[1]},<{TRIED_BELOW[0]}.{TRIED_BELOW[1]}"

_told: set[str] = set()


def check_release(version: str) -> None:
    """Refuse a PySpark that is too old; warn, once, of one that nobody has tried."""
    major, _, rest = version.partition(".")
    release = (int(major), int(rest.partition(".")[0]))
    if release < FROM:
        raise TidegateError(
            f"PySpark {version} is too old for Tidegate, which needs {RANGE}: older releases do not"
            " tell Python sources from where on to read, and how much; install one with"
            f' pip install "pyspark{RANGE}"'
        )
    if release >= TRIED_BELOW and version not in _told:
        _told.add(version)
        warnings.warn(
            f"PySpark {version} is newer than the releases that Tidegate was tried with ({TRIED});"
            " if something fails, try one of those",
            stacklevel=3,
        )
