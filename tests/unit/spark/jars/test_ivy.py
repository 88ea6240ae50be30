"""What Ivy is asked, and what is made of its answers. A Java that fails stands in for it."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tidegate.errors import AskedWrongly
from tidegate.spark.jars import ivy
from tidegate.spark.java import Java


@pytest.fixture
def java_that_says(tmp_path, monkeypatch):
    def prepare(text: str, code: int) -> Path:
        script = tmp_path / "java"
        script.write_text(
            f'#!/bin/sh\necho "$@" > "{tmp_path}/asked"\ncat <<END\n{text}\nEND\nexit {code}\n'
        )
        script.chmod(0o700)
        monkeypatch.setattr(ivy, "find_java", lambda: Java(script, 17, "PATH"))
        return tmp_path / "asked"

    return prepare


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("\tServer access error at url x (java.net.UnknownHostException: x)", "UnknownHost"),
        (":: WARNINGS\n\t\tmodule not found: a.b#c;1\n\t::::", "module not found: a.b#c;1"),
        ("module not found: a#b;1\nServer access error: Connection refused", "Connection refused"),
        ("", "Ivy said nothing"),
    ],
)
def test_the_line_that_matters_is_told(java_that_says, tmp_path, output, said):
    java_that_says(output, 1)
    with pytest.raises(ivy.JarsUnavailable, match=said) as caught:
        ivy.download(["a.b:c:1"], tmp_path)
    assert "\n" not in str(caught.value)


def test_ivy_keeps_to_itself(java_that_says, tmp_path):
    """It has a cache of its own each time: one with half of a module in it would make it fail."""
    asked = java_that_says("", 0)
    ivy.download(["a.b:c:1"], tmp_path / "jars")
    words = asked.read_text().split()
    assert words[2] == "org.apache.ivy.Main" and "/ivy-" in words[1]
    cache = Path(words[words.index("-cache") + 1])
    assert not cache.exists() and Path.home() not in cache.parents
    assert words[words.index("-retrieve") + 1].startswith(str(tmp_path / "jars"))


def test_the_settings_name_no_repository(tmp_path, monkeypatch):
    monkeypatch.delenv(ivy.SETTINGS_VARIABLE, raising=False)
    text = ivy.settings_file(tmp_path, with_poms=False).read_text()
    resolver = ElementTree.fromstring(text).find("resolvers/ibiblio")
    assert resolver is not None and resolver.get("usepoms") == "false"
    assert "://" not in text


def test_settings_of_the_user_come_first(tmp_path, monkeypatch):
    own = tmp_path / "mirror.xml"
    monkeypatch.setenv(ivy.SETTINGS_VARIABLE, str(own))
    with pytest.raises(AskedWrongly, match=r"mirror\.xml is not a file"):
        ivy.settings_file(tmp_path)
    own.write_text("<ivysettings/>")
    assert ivy.settings_file(tmp_path) == own


def test_a_module_asks_for_the_jars_alone_or_for_what_they_need():
    alone = ElementTree.fromstring(ivy._module(["a.b:c:1"], with_dependencies=False))
    (one,) = alone.iter("dependency")
    assert (one.get("org"), one.get("name"), one.get("rev")) == ("a.b", "c", "1")
    assert one.get("transitive") == "false" and one.find("artifact") is not None
    whole = ElementTree.fromstring(ivy._module(["a.b:c:1"], with_dependencies=True))
    (one,) = whole.iter("dependency")
    assert one.get("transitive") is None and one.get("conf") == "default->default"
