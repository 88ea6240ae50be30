"""The application can be listed without OpenCV; running it then asks for the extra."""

import sys
from importlib import import_module

import pytest

from tidegate.errors import AskedWrongly
from tidegate.workload.parse import parse_profile

PLACE = "tidegate.apps.vld.application"


def test_it_is_listed_without_opencv(monkeypatch) -> None:
    for name in [name for name in sys.modules if name.startswith("tidegate.apps.vld")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cv2", None)  # an import of it fails
    monkeypatch.setattr("tidegate.apps.application.find_spec", lambda name: None)
    with pytest.raises(AskedWrongly, match="cv2"):
        import_module(PLACE).APPLICATION.check()


def test_its_load_is_the_papers() -> None:
    application = import_module(PLACE).APPLICATION
    rate = parse_profile(application.rate)
    assert rate.count(1_000_000) == 13_000
    assert (rate.rates.min(), rate.rates.max()) == (1.0, 25.0)
    assert set(application.stretched_s) == set(application.operators)
    assert application.cores[1] == 22
