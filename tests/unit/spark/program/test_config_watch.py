"""A file of options that changes while the program runs."""

import logging
from pathlib import Path
from typing import Any

import pytest

from tidegate.errors import AskedWrongly
from tidegate.spark.program.config_file import ConfigFile, over
from tidegate.spark.program.config_watch import BOUNDS, Config, ConfigWatch


class Watched:
    """A file, and the updates that its changes ask for."""

    def __init__(self, path: Path, text: str, *, left_out: tuple[str, ...] = (), **flags: Any):
        self.path = path
        self.updates: list[dict[str, Any]] = []
        self.error: AskedWrongly | None = None
        path.write_text(text)
        file = ConfigFile(path)
        config = Config(file, flags, over(flags, file.options()))
        self._watch = ConfigWatch(config, self._update, left_out=left_out)

    def _update(self, **options: Any) -> None:
        if self.error is not None:
            raise self.error
        self.updates.append(options)

    def tick(self, text: str | None = None) -> None:
        if text is not None:
            self.path.write_text(text)
        self._watch(None)  # type: ignore[arg-type]  # it looks at the file, not at the record


@pytest.fixture
def place(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Path:
    caplog.set_level(logging.WARNING, "tidegate")
    return tmp_path / "tidegate.toml"


def test_what_changes_in_the_file_is_updated(place: Path, caplog) -> None:
    watched = Watched(place, 'target = "5s"\ndry_run = true\n')
    watched.tick()
    watched.tick()
    assert watched.updates == []
    watched.tick('target = "2s"\ndry_run = true\nexecutors = [1, 8]\n')
    watched.tick()
    watched.tick('target = "2s"\n')
    assert watched.updates == [
        {"target": "2s", "executors": (1, 8)},
        {"executors": None, "dry_run": False},
    ]
    assert not caplog.records


def test_a_webhook_may_come_and_go_and_is_not_logged(place: Path, caplog) -> None:
    hook = "https://hooks.example.com/SECRET"
    watched = Watched(place, 'target = "5s"\n')
    watched.tick(f'target = "5s"\nnotify = "{hook}"\nnotify_after = "10s"\n')
    watched.error = AskedWrongly("notify: this is no web address")
    watched.tick('target = "5s"\nnotify = "https:///SECRET"\n')
    watched.error = None
    watched.tick('target = "5s"\n')
    assert watched.updates == [
        {"notify": (hook,), "notify_after": "10s"},
        {"notify": "log", "notify_after": "30 seconds"},
    ]
    assert len(caplog.records) == 1 and "SECRET" not in caplog.text


def test_a_broken_file_is_one_warning(place: Path, caplog) -> None:
    watched = Watched(place, 'target = "5s"\n')
    for _ in range(3):
        watched.tick('target = "2s\n')
    assert len(caplog.records) == 1
    assert "is not valid TOML" in caplog.text and "the settings stay" in caplog.text
    place.unlink()
    watched.tick()
    watched.tick()
    assert len(caplog.records) == 2 and "there is no file" in caplog.text
    watched.tick('target = "5s"\n')
    assert watched.updates == []


def test_a_refused_change_is_one_warning_and_can_be_mended(place: Path, caplog) -> None:
    watched = Watched(place, 'target = "5s"\n')
    watched.error = AskedWrongly("cores=(1, 99), but the master has 4")
    watched.tick('target = "2s"\ncores = [1, 99]\n')
    watched.tick()
    assert len(caplog.records) == 1 and "but the master has 4; the settings stay" in caplog.text
    watched.error = None
    watched.tick('target = "2s"\ncores = [1, 4]\n')
    assert watched.updates == [{"target": "2s", "cores": (1, 4)}]


def test_what_cannot_change_is_named_and_the_rest_is_done(place: Path, caplog) -> None:
    watched = Watched(place, 'target = "5s"\n')
    watched.tick('target = "2s"\ntick = "5s"\nmaster = "local[2]"\n')
    watched.tick()
    assert watched.updates == [{"target": "2s"}]
    assert len(caplog.records) == 1
    assert "tick and master in" in caplog.text and "cannot change" in caplog.text
    watched.tick('target = "3s"\ntick = "5s"\n')
    assert len(caplog.records) == 1, "said once; and the master is what it was again"
    watched.tick('target = "3s"\ntick = "6s"\n')
    assert len(caplog.records) == 2


def test_flags_win_and_a_laptop_has_no_executors(place: Path) -> None:
    watched = Watched(place, "executors = [1, 4]\n", left_out=BOUNDS, target="5s")
    watched.tick('target = "2s"\nexecutors = [1, 8]\ncatch_up = "9s"\n')
    assert watched.updates == [{"catch_up": "9s"}]
