"""`tidegate page`: it follows a run of another process, and refuses before it serves."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.helpers.places import ROOT, SOURCE
from tests.helpers.synthetic_surge import surge
from tidegate.recording import CURRENT, RecordWriter

PATIENCE_S = 60.0


def command(*arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "COLUMNS": "200"}
    return subprocess.Popen(
        [sys.executable, "-m", "tidegate", "page", *arguments],
        cwd=ROOT,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Callable[..., tuple[subprocess.Popen[str], str]]]:
    started = []

    def serve(*arguments: str) -> tuple[subprocess.Popen[str], str]:
        process = command(*arguments)
        started.append(process)
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.fullmatch(r"live page: (http://127\.0\.0\.1:\d+/)\n", line)
        assert found is not None, line + process.stderr.read()
        return process, found[1]

    yield serve
    for process in started:
        process.kill()
        process.communicate()


def value(url: str, name: str) -> float | None:
    with urllib.request.urlopen(f"{url}metrics", timeout=PATIENCE_S) as answer:
        families = text_string_to_metric_families(answer.read().decode())
    samples = (sample for family in families for sample in family.samples)
    return next((sample.value for sample in samples if sample.name == name), None)


def wait_for_value(url: str, name: str, expected: float) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while value(url, name) != expected:
        assert time.monotonic() < until_s, f"{name} did not become {expected}"
        time.sleep(0.05)


def ended_by_ctrl_c(process: "subprocess.Popen[str]") -> str:
    """Ctrl-C, again if the first one fell into an import, where Python may lose it."""
    for _ in range(6):
        process.send_signal(signal.SIGINT)
        try:
            return process.communicate(timeout=PATIENCE_S / 6)[1]
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError("Ctrl-C does not end it")


def test_it_follows_the_records_of_another_process(serving, tmp_path: Path) -> None:
    records = surge()
    last = "tidegate_last_tick_timestamp_seconds"
    with RecordWriter(tmp_path) as writer:
        for record in records[:5]:
            writer.write(record)
        process, url = serving(str(tmp_path), "--port", "0")
        wait_for_value(url, last, records[4].measurement.at_s)
        for record in records[5:]:
            writer.write(record)
        wait_for_value(url, last, records[-1].measurement.at_s)
    said = ended_by_ctrl_c(process)
    assert process.returncode == 130 and said == "tidegate: stopped\n"


def test_several_runs_have_one_page(serving, tmp_path: Path) -> None:
    for name in ("clicks", "orders"):
        with RecordWriter(tmp_path / name) as writer:
            writer.write(surge()[0])
    _, url = serving(str(tmp_path / "clicks"), str(tmp_path / "orders"), "--port=0")
    wait_for_value(url, "tidegate_target_seconds", 2.0)
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
        html = answer.read().decode()
    assert ">clicks</a>" in html and ">orders</a>" in html


STAYS = """
from tidegate.commands.page import open_page, stay
stay(open_page(0, "demo"))
print("over")
"""


def test_a_page_stays_after_its_run_until_ctrl_c() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", STAYS],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        url = process.stderr.readline().removeprefix("live page: ").strip()
        assert process.stderr.readline() == f"the live page stays at {url}; Ctrl-C ends it\n"
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
            assert "<h1>demo</h1>" in answer.read().decode()
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=PATIENCE_S) == ("over\n", "")
        assert process.returncode == 0
    finally:
        process.kill()


def refused(*arguments: str) -> tuple[int, str]:
    process = command(*arguments)
    _, said = process.communicate(timeout=PATIENCE_S)
    return process.returncode, said


def test_what_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    code, said = refused(str(tmp_path / "nothing"), "--port=0")
    assert code == 2 and "does not exist" in said and said.count("\n") == 1
    (tmp_path / CURRENT).write_text(json.dumps({"version": 99}) + "\n")
    code, said = refused(str(tmp_path), "--port=0")
    assert code == 1 and "version 99" in said


def test_a_port_in_use_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with RecordWriter(tmp_path) as writer:
        writer.write(surge()[0])
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        code, said = refused(str(tmp_path), f"--port={port}")
    assert code == 2 and f"127.0.0.1:{port} cannot be listened on" in said
    assert said.count("\n") == 1
