"""What `notify` may be, and what is refused before anything starts."""

from pathlib import Path
from typing import Any

import pytest

from tidegate.control.notice import Notice
from tidegate.errors import AskedWrongly
from tidegate.spark.loop.settings import merged
from tidegate.spark.notices.receivers import NotifySettings, notify_settings
from tidegate.spark.options import AttachOptions, ProgramOptions, StartOptions, filled
from tidegate.spark.program.config_file import parse_options
from tidegate.spark.program.settings import settle

HOOK = "https://hooks.example.com/services/SECRET"


def told(notice: Notice) -> None:
    """A receiver."""


def of(notify: Any, after: str = "30 seconds") -> NotifySettings:
    return notify_settings({"notify": notify, "notify_after": after})


def test_one_or_several_in_any_order() -> None:
    assert of("log") == of(()) == of(["log"]) == NotifySettings()
    assert of(HOOK) == NotifySettings(webhooks=(HOOK,))
    assert of([told, "log", HOOK], "2 min") == NotifySettings((HOOK,), (told,), 120.0)
    assert notify_settings(filled(StartOptions, {})) == NotifySettings()


@pytest.mark.parametrize(
    ("notify", "said"),
    [
        ("slack", "'slack' is neither 'log' nor a function nor an address"),
        ("hooks.example.com/services/SECRET", r"'hooks.example.com/\.\.\.' is neither"),
        (["log", 5], "a int is neither"),
        ("htp://SECRET", "begins with htp://"),
        ([HOOK, "https:///SECRET"], "this is no web address"),
        ("", "'' is neither"),
    ],
)
def test_what_is_no_receiver_is_refused(notify: Any, said: str) -> None:
    with pytest.raises(AskedWrongly, match=said) as refused:
        of(notify)
    assert "SECRET" not in str(refused.value)


def test_a_wrong_time_is_named() -> None:
    with pytest.raises(AskedWrongly, match="notify_after: '30' is not a duration"):
        of("log", "30")


def test_an_address_is_shown_nowhere() -> None:
    assert "SECRET" not in repr(of(HOOK))
    with pytest.raises(AskedWrongly, match="notify=dict: expected text") as refused:
        filled(AttachOptions, {"notify": {"url": HOOK}})
    assert "SECRET" not in str(refused.value)


def test_both_can_change_while_it_runs() -> None:
    given = filled(StartOptions, {"target": "2 s"})
    now = merged(StartOptions, given, {"notify": [HOOK, told], "notify_after": "10 s"})
    assert notify_settings(now) == NotifySettings((HOOK,), (told,), 10.0)


def test_a_file_of_options_has_one_or_several() -> None:
    for text in (f'notify = "{HOOK}"', f'notify = ["log", "{HOOK}"]'):
        assert notify_settings(filled(ProgramOptions, parse_options(text, "a file"))).webhooks == (
            HOOK,
        )


def test_a_program_is_not_run_with_a_wrong_one(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text("")
    with pytest.raises(AskedWrongly, match="'slack' is neither"):
        settle(script, (), {"target": "5s", "notify": ("slack",)})
    assert settle(script, (), {"target": "5s", "notify": (HOOK,)}).attach["notify"] == (HOOK,)
