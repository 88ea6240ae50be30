"""The range of PySpark releases: declared once for pip, and told at the start."""

import re
import warnings

import pyspark
import pytest

import tidegate
from tests.helpers.places import ROOT
from tidegate.errors import TidegateError
from tidegate.spark.releases import FROM, RANGE, check_release


def test_pip_gets_the_same_range():
    declared = (ROOT / "pyproject.toml").read_text()
    assert f'"pyspark{RANGE}"' in declared


def test_the_lock_file_is_inside_the_range():
    found = re.search(r"^pyspark==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    assert found is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_release(found[1])
        check_release("4.2.0")


@pytest.mark.parametrize("version", ["3.5.9", "4.1.4", "4.0.0.dev1"])
def test_an_old_release_is_refused_with_what_to_install(version):
    with pytest.raises(TidegateError, match=rf'{version} is too old .* "pyspark>=4.2,<5"'):
        check_release(version)


def test_the_oldest_release_is_pinned_for_its_tests():
    """`make test-oldest` installs it over the others."""
    pinned = (ROOT / "requirements-oldest.lock").read_text()
    assert re.search(rf"^pyspark=={FROM[0]}\.{FROM[1]}\.0 \\\n    --hash=sha256:", pinned, re.M)


def test_a_newer_release_is_warned_of_once():
    with pytest.warns(UserWarning, match=r"4.4.0 is newer than .*>=4\.2,<4\.4"):
        check_release("4.4.0")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_release("4.4.0")


def test_the_first_use_of_a_name_that_needs_spark_tells(monkeypatch):
    """Before the import, which would fail for want of a module that the old release lacks."""
    monkeypatch.setattr(pyspark, "__version__", "4.1.4")
    monkeypatch.delitem(vars(tidegate), "arrivals", raising=False)
    with pytest.raises(TidegateError, match=r"PySpark 4\.1\.4 is too old"):
        tidegate.arrivals  # noqa: B018
