"""`tidegate demo` from end to end, as a user runs it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.helpers.places import SOURCE


def test_the_command_prints_one_document_and_draws_a_picture(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tidegate", "demo", "--json", "--seconds", "6"]
    command += ["--rate", "constant:100", "--master", "local[4]", "--picture", "out/demo.html"]
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "TMPDIR": str(tmp_path)}
    run = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=300
    )
    assert run.returncode == 0, run.stderr
    document = json.loads(run.stdout)
    assert document["rows"] == document["arrived"] == 600
    assert document["verified"] is True
    assert document["shed"] == 0
    assert document["target_ms"] == 2000
    assert {"within_target", "p95_ms", "core_seconds", "static_core_seconds"} <= document.keys()
    assert "WARN" not in run.stderr
    page = (tmp_path / "out" / "demo.html").read_text()
    assert "<script" in page
    assert not re.search(r"<(script|link)[^>]+(src|href)=", page), "it stands alone"
