"""`tidegate savepoint` says what it has copied, for people and for programs."""

import json

import pytest
from typer.testing import CliRunner

from tests.helpers.kept_checkpoint import unpacked
from tests.unit.spark.savepoint.test_savepoint import Made
from tidegate.cli import app
from tidegate.errors import AskedWrongly


def test_what_was_copied_is_printed(tmp_path):
    checkpoint = unpacked("release-0.1", tmp_path / "ck")
    done = CliRunner().invoke(app, ["savepoint", str(checkpoint), str(tmp_path / "sp")])
    assert done.exit_code == 0
    assert "pipeline 'kept' after batch 1 of segment 'main'" in done.output.replace("\n", " ")
    with pytest.raises(AskedWrongly, match="is a savepoint already; give another directory"):
        CliRunner().invoke(
            app, ["savepoint", str(checkpoint), str(tmp_path / "sp")], catch_exceptions=False
        )


def test_an_older_version_as_json(tmp_path):
    made = Made(tmp_path / "ck")
    for number in range(3):
        made.batch(number)
    arguments = ["savepoint", str(made.root), str(tmp_path / "sp"), "--version", "1", "--json"]
    found = json.loads(CliRunner().invoke(app, arguments, catch_exceptions=False).stdout)
    assert (found["pipeline"], found["batches"]) == ("faults", {"main": 1})
    assert found["files"] > 5 and found["bytes"] > 100
