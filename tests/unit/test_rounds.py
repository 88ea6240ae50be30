"""Long tests say which round begins, and how long the others take."""

import os
import subprocess
import sys

from tests.helpers.places import ROOT, SOURCE
from tests.helpers.rounds import Rounds
from tidegate.progress import Progress


def test_each_round_is_a_line_with_the_time_left() -> None:
    said: list[str] = []
    now_s = iter([0.0, 0.0, 0.0, 0.0, 40.0, 40.0, 100.0, 100.0])
    rounds = Rounds(3, said.append, Progress(clock=lambda: next(now_s)))
    for kind in ("kill driver", "kill executor", "cache full"):
        rounds.begin(kind)
    assert said == [
        "round 1 of 3: kill driver",
        "round 2 of 3: kill executor; about 80 s left",
        "round 3 of 3: cache full; about 50 s left",
    ]


def test_the_search_for_faults_tells_how_far_it_is_apart_from_what_it_found() -> None:
    command = [sys.executable, "-m", "tests.faults", "--seeds", "50"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(SOURCE), str(ROOT)])}
    run = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("50 seeds in ") and "left" not in run.stdout
