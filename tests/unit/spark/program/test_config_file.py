"""Options from a file: the same as the flags, refused before anything starts."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import AskedWrongly
from tidegate.spark.options import IN_CODE, AttachOptions, ProgramOptions, declared, option
from tidegate.spark.program.config_file import ConfigFile, over, parse_options
from tidegate.spark.program.option_text import option_value


def test_every_option_of_attach_can_be_in_the_file() -> None:
    text = """
        target = "5s"
        percentile = 95
        executors = [1, 20]
        tick = "2s"
        excluded = ["09:00-10:00"]
        dry_run = true
        records = "somewhere"
        master = "local[2]"
        conf = "spark.ui.enabled=false"
        kafka = false
        quiet = true
    """
    assert parse_options(text, "job.toml") == {
        "target": "5s",
        "percentile": 95,
        "executors": (1, 20),
        "tick": "2s",
        "excluded": ("09:00-10:00",),
        "dry_run": True,
        "records": "somewhere",
        "master": "local[2]",
        "conf": ("spark.ui.enabled=false",),
        "kafka": False,
        "quiet": True,
    }
    assert set(declared(AttachOptions)) - set(IN_CODE) < set(declared(ProgramOptions))
    assert not set(IN_CODE) & set(declared(ProgramOptions)), "a function cannot be written"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tarket = '5s'", "job.toml: there is no option 'tarket'; did you mean 'target'?"),
        ("dry-run = true", "job.toml: there is no option 'dry-run'; did you mean 'dry_run'?"),
        ("target = 5", "job.toml: target=5: expected text or None"),
        ("executors = [1, 'a']", "job.toml: executors = [1, 'a']: write [FEWEST, MOST]"),
        ("executors = [1, 2, 3]", "write [FEWEST, MOST], such as [1, 20]"),
        ("executors = '20:1'", "executors 20:1: give a minimum from 1 up to the maximum"),
        ("percentile = 'high'", "percentile high: expected a whole number"),
        ("dry_run = 'yes'", "dry_run='yes': expected True or False"),
        ("target = ", "job.toml is not valid TOML: Invalid value"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_name_of_the_file(text: str, says: str) -> None:
    with pytest.raises(AskedWrongly) as refused:
        parse_options(text, "job.toml")
    assert says in str(refused.value)


def test_a_file_that_is_not_there_or_not_text(tmp_path: Path) -> None:
    with pytest.raises(AskedWrongly, match=r"there is no file .*none.toml"):
        ConfigFile(tmp_path / "none.toml").options()
    (tmp_path / "odd.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(AskedWrongly, match="it is not UTF-8 text"):
        ConfigFile(tmp_path / "odd.toml").options()
    with pytest.raises(AskedWrongly, match="cannot be read: Is a directory"):
        ConfigFile(tmp_path).options()


def test_a_changed_file_has_the_new_options(tmp_path: Path) -> None:
    file = ConfigFile(tmp_path / "job.toml")
    file.path.write_text("target = '5s'")
    assert file.options() == {"target": "5s"}
    file.path.write_text("target = '2s'\ndry_run = true")
    assert file.options() == {"target": "2s", "dry_run": True}


def test_flags_win_over_the_file_and_a_bound_replaces_both() -> None:
    config = {"target": "5s", "executors": (1, 20), "dry_run": True}
    flags = {"target": None, "cores": (2, 4), "dry_run": False, "executors": None}
    assert over(flags, config) == {"target": "5s", "cores": (2, 4), "dry_run": False}
    assert over({}, config) == config


@given(least=st.integers(1, 10**6), more=st.integers(0, 10**6))
def test_a_span_as_text_is_a_span(least: int, more: int) -> None:
    executors = option("executors", ProgramOptions)
    assert option_value(executors, f"{least}:{least + more}") == (least, least + more)
    assert option_value(executors, str(least)) == (least, least)
    assert option_value(executors, [least, least + more]) == (least, least + more)
    assert option_value(executors, least) == least


@given(st.text())
def test_any_text_is_a_span_or_refused(text: str) -> None:
    try:
        least, most = option_value(option("cores", ProgramOptions), text)
    except AskedWrongly:
        return
    assert 1 <= least <= most
