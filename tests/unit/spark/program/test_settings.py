"""What a program is run with is checked before the program or Spark starts."""

from pathlib import Path

import pytest

from tidegate.errors import AskedWrongly
from tidegate.spark.program.settings import require_records, settle

ASKED = {"target": "5s"}


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "job.py"
    path.write_text("")
    return path


def test_options_of_attach_apart_from_the_programs(script: Path, monkeypatch) -> None:
    monkeypatch.chdir(script.parent)
    conf = ["spark.ui.enabled=false", "spark.x= a=b "]
    given = {**ASKED, "executors": (1, 20), "conf": conf, "master": "local[2]"}
    settings = settle(script, ("--x", "1"), given)
    assert settings.attach["target"] == "5s"
    assert settings.attach["executors"] == (1, 20)
    assert settings.attach["tick"] == "1 second"
    assert "master" not in settings.attach
    assert settings.conf == {"spark.ui.enabled": "false", "spark.x": "a=b"}
    assert (settings.master, settings.kafka, settings.quiet) == ("local[2]", None, False)
    assert settings.arguments == ("--x", "1")


def test_records_are_named_by_the_script_wherever_the_program_goes(script, monkeypatch) -> None:
    monkeypatch.chdir(script.parent)
    settings = settle(script, (), ASKED)
    assert settings.records == str(script.parent / "out" / "run" / "job")
    monkeypatch.chdir("/")
    require_records(settings.records)
    assert (script.parent / "out" / "run" / "job").is_dir()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "run needs a target: give --target 5s"),
        ({"target": "5"}, "'5' is not a duration"),
        ({"target": "5 parsecs"}, "unknown unit of time 'parsecs'"),
        ({**ASKED, "percentile": 42}, "42"),
        ({**ASKED, "executors": (5, 2)}, "executors=(5, 2): give a minimum"),
        ({**ASKED, "executors": 2, "cores": 2}, "both set the same bounds"),
        ({**ASKED, "tick": "soon"}, "'soon' is not a duration"),
        ({**ASKED, "excluded": ("noon",)}, "noon"),
        ({**ASKED, "master": "locl[2]"}, "'locl[2]' is not a Spark master"),
        ({**ASKED, "master": "sc://host"}, "is a Spark Connect server"),
        ({**ASKED, "conf": ["ui.enabled=false"]}, "write KEY=VALUE with a Spark setting"),
        ({**ASKED, "conf": ["spark.ui.enabled"]}, "write KEY=VALUE with a Spark setting"),
        ({**ASKED, "conf": ["spark.master=yarn"]}, "give the master with --master"),
        ({**ASKED, "records": "s3://key:secret@bucket/x"}, "has credentials in its URL"),
    ],
)
def test_what_is_refused(script: Path, given: dict, says: str) -> None:
    with pytest.raises(AskedWrongly) as refused:
        settle(script, (), given)
    assert says in str(refused.value)


def test_a_script_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(AskedWrongly, match=r"none.py does not exist; give the path"):
        settle(tmp_path / "none.py", (), ASKED)
    with pytest.raises(AskedWrongly, match="is a directory; give the path"):
        settle(tmp_path, (), ASKED)


def test_records_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(AskedWrongly, match=r"records cannot be written to .*--records"):
        require_records(str(tmp_path / "file" / "records"))
