"""`tidegate demo` from end to end, as a user runs it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.browser import opened, running_browser
from tests.helpers.demo_page import LOAD, WITHIN_S, check, running_demo, shown_after_s
from tests.helpers.places import SOURCE


def demo(directory: Path, *options: str) -> tuple[dict[str, Any], str]:
    """Run it for four seconds; returns its document and what it said."""
    command = [sys.executable, "-m", "tidegate", "demo", "--json", "--seconds", "4"]
    command += ["--rate", "constant:100", "--master", "local[4]", *options]
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "TMPDIR": str(directory)}
    run = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=directory, timeout=300
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout), run.stderr


def test_the_command_prints_one_document_and_draws_a_picture(tmp_path: Path) -> None:
    document, said = demo(tmp_path, "--picture", "out/demo.html")
    assert document["rows"] == document["arrived"] == 400
    assert document["verified"] is True
    assert document["shed"] == 0
    assert document["target_ms"] == 2000
    assert {"within_target", "p95_ms", "core_seconds", "static_core_seconds"} <= document.keys()
    assert "WARN" not in said
    page = (tmp_path / "out" / "demo.html").read_text()
    assert "<script" in page
    assert not re.search(r"<(script|link)[^>]+(src|href)=", page), "it stands alone"


SURGES = "step:60@0,240@3,60@6,240@9"
HIGH = 150.0
"""Between the two loads."""


def test_its_page_shows_a_surge_within_seconds(tmp_path: Path) -> None:
    """Twice, because a machine that runs other tests may be busy with them once."""
    asked = ["--json", "--seconds", "12", "--rate", SURGES, "--master", "local[4]", "--picture", ""]
    with (
        running_browser() as browser,
        running_demo(tmp_path, *asked) as demo,
        opened(browser, demo.url) as tab,
    ):
        start_s, shown_s = demo.start_s(), []
        for surge_s in (3.0, 9.0):
            tab.page.wait_for_function(f"() => ({LOAD})() < {HIGH}")
            shown_s.append(shown_after_s(tab, HIGH, start_s + surge_s))
        check(tab, demo)
    assert 0.0 < min(shown_s) <= WITHIN_S, shown_s


@pytest.mark.experiment
def test_the_load_through_a_broker_is_counted_as_well(kafka_jars: None, tmp_path: Path) -> None:
    document, _ = demo(tmp_path, "--kafka", "--picture", "")
    assert document["kafka"] is True and document["verified"] is True
    assert document["rows"] == document["arrived"] == 400
    assert {"within_target", "p95_ms", "core_seconds", "static_core_seconds"} <= document.keys()
    assert list(tmp_path.glob("tidegate-kafka-*")) == [], "the broker's files are gone"
