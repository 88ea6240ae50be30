"""The releases of PySpark that Tidegate runs on; pyproject.toml has the same range.

4.2 brought Python sources with read limits. `tests/unit/spark/test_releases.py` holds the two
together, and CONTRIBUTING.md says how to try another release.
"""

import warnings

from tidegate.errors import TidegateError

FROM = (4, 2)
BELOW = (4, 4)
RANGE = f">={FROM[0]}.{FROM[1]},<{BELOW[0]}.{BELOW[1]}"

_told: set[str] = set()


def check_release(version: str) -> None:
    """Refuse a PySpark that is too old; warn, once, of one that nobody has tried."""
    major, _, rest = version.partition(".")
    release = (int(major), int(rest.partition(".")[0]))
    if release < FROM:
        raise TidegateError(
            f"PySpark {version} is too old for Tidegate, which needs {RANGE}; install one with "
            f'pip install "pyspark{RANGE}"'
        )
    if release >= BELOW and version not in _told:
        _told.add(version)
        warnings.warn(
            f"PySpark {version} is newer than the releases that Tidegate was tried with ({RANGE}); "
            "if something fails, try one of those",
            stacklevel=3,
        )
