"""What can be varied: every option has a meaning, and a wrong one is refused in one sentence."""

from dataclasses import fields

import pytest

from tidegate.apps.catalogue import application
from tidegate.apps.storm_benchmark.options import (
    GrepOptions,
    LogOptions,
    RollingCountOptions,
    VisitorOptions,
)
from tidegate.errors import AskedWrongly

KINDS = {
    "grep": GrepOptions,
    "rolling-count": RollingCountOptions,
    "unique-visitor": VisitorOptions,
    "page-view": LogOptions,
    "data-clean": LogOptions,
}


@pytest.mark.parametrize("name", KINDS)
def test_every_option_has_a_meaning_with_its_default(name: str) -> None:
    known = application(name)
    assert list(known.options) == [one.name for one in fields(KINDS[name])]
    assert all(
        known.options[one.name].endswith(f"default {one.default}") for one in fields(KINDS[name])
    )
    assert known.read_options({}) == KINDS[name]()


def test_options_are_read() -> None:
    asked = {"words": "50", "pattern": "^a.*b$"}
    assert application("grep").read_options(asked) == GrepOptions(words=50, pattern="^a.*b$")
    found = application("unique-visitor").read_options({"window_s": "60", "every_s": "5"})
    assert found == VisitorOptions(window_s=60, every_s=5)


@pytest.mark.parametrize(
    "name, extra, message",
    [
        ("grep", {"words": "0"}, "words=0: give 1 to"),
        ("grep", {"pattern": "("}, "no regular expression"),
        ("grep", {"pattern": "(?=a)"}, "no regular expression"),
        ("grep", {"patern": "a"}, "did you mean 'pattern'"),
        ("rolling-count", {"window_s": "half"}, "expected a whole number"),
        ("rolling-count", {"every_s": "7"}, "multiple of every_s"),
        ("rolling-count", {"every_s": "60"}, "every_s=60: give 1 to 30"),
        ("unique-visitor", {"window_s": "300", "every_s": "1"}, "up to 60"),
        ("unique-visitor", {"users": "0"}, "users=0"),
        ("page-view", {"pages": "2"}, "pages=2: give 3 to"),
        ("data-clean", {"window_s": "3"}, "no option 'window_s'"),
    ],
)
def test_a_wrong_option_is_one_sentence(name: str, extra: dict[str, str], message: str) -> None:
    with pytest.raises(AskedWrongly, match=None) as caught:
        application(name).check_options(extra)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
