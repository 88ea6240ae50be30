"""The application can be listed without VADER; running it then asks for the extra."""

import sys
from importlib import import_module

import pytest

from tidegate.errors import AskedWrongly


def test_it_is_listed_without_vader(monkeypatch) -> None:
    for name in [name for name in sys.modules if name.startswith("tidegate.apps.sentiment")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "vaderSentiment", None)  # an import of it fails
    monkeypatch.setattr("tidegate.apps.application.find_spec", lambda name: None)
    with pytest.raises(AskedWrongly, match="vaderSentiment"):
        import_module("tidegate.apps.sentiment.application").APPLICATION.check()
