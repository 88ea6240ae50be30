"""A script sees what it would see under `python SCRIPT`, and ends in the same way."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.places import SOURCE
from tests.helpers.program import tidegate_run

SEES = """
import sys
print(__name__, __file__, sys.argv, sys.path[0], __spec__, __package__, __builtins__)
print(sys.modules["__main__"].__dict__ is globals(), __loader__.get_filename(), __cached__)
import beside
print(beside.__file__)
"""
RAISES = """
def fail():
    raise ValueError("of the program")

try:
    {}["missing"]
except KeyError:
    fail()
"""
ATEXIT = """
import atexit, threading, time

def work():
    time.sleep(0.3)
    print("thread", __name__)

atexit.register(lambda: print("at exit", __name__, flush=True))
threading.Thread(target=work).start()
print("end")
"""
HOOK = "import sys\nsys.excepthook = lambda *given: print('hook', given[1])\nraise ValueError(3)\n"


def ended(words: list[str], directory: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    for name in ("SPARK_REMOTE", "PYSPARK_GATEWAY_PORT"):
        environment.pop(name, None)
    return subprocess.run(
        words, cwd=directory, capture_output=True, text=True, env=environment, timeout=120
    )


def both(tmp_path: Path, source: str, *arguments: str):
    """The same script by Python alone, and by `tidegate run --quiet`."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "beside.py").write_text("")
    (folder / "job.py").write_text(source)
    script = ["folder/job.py", *arguments]
    alone = ended([sys.executable, *script], tmp_path)
    run = ended(tidegate_run("--target", "5s", "--quiet", *script), tmp_path)
    return alone, run


@pytest.mark.parametrize(
    ("source", "code"),
    [
        (SEES, 0),
        (RAISES, 1),
        (ATEXIT, 0),
        (HOOK, 1),
        ("import sys\nprint('x')\nsys.exit(-1)", 255),
        ("import sys\nsys.exit('what went wrong')", 1),
        ("raise SystemExit(130)", 130),
        ("raise KeyboardInterrupt", -signal.SIGINT),
        ("def broken(:\n    pass\n", 1),
        ("import os\nos._exit(9)", 9),
    ],
    ids=["sees", "raises", "atexit", "hook", "exit", "message", "130", "ctrl-c", "syntax", "_exit"],
)
def test_as_python_itself_would_run_it(tmp_path: Path, source: str, code: int) -> None:
    alone, run = both(tmp_path, source, "--target", "--", "a b")
    assert alone.returncode == code
    assert (run.returncode, run.stdout, run.stderr) == (code, alone.stdout, alone.stderr)


def test_without_a_session_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text("print('done')")
    run = ended(tidegate_run("--target", "5s", "job.py"), tmp_path)
    assert (run.returncode, run.stdout) == (0, "done\n")
    said = "tidegate: the program started no Spark session, so nothing was attached\n"
    assert run.stderr == said


def test_spark_connect_is_refused_by_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(
        "from pyspark.sql import SparkSession\n"
        "try:\n    SparkSession.builder.remote('sc://localhost:1').getOrCreate()\n"
        "except Exception:\n    print('taken for its own')\n"
    )
    run = ended(tidegate_run("--target", "5s", "job.py"), tmp_path)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("tidegate: this program uses Spark Connect, whose driver is")
    assert run.stderr.count("\n") == 1
