"""The application can be listed without river; running it then asks for the extra."""

import sys
from importlib import import_module

import pytest

from tidegate.errors import AskedWrongly

PLACE = "tidegate.apps.vht.application"


def test_it_is_listed_without_river(monkeypatch) -> None:
    for name in [name for name in sys.modules if name.startswith("tidegate.apps.vht")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "river", None)  # an import of it fails
    monkeypatch.setattr("tidegate.apps.application.find_spec", lambda name: None)
    with pytest.raises(AskedWrongly, match="river"):
        import_module(PLACE).APPLICATION.check()


def test_every_operator_has_its_time() -> None:
    application = import_module(PLACE).APPLICATION
    assert set(application.stretched_s) == set(application.operators)
