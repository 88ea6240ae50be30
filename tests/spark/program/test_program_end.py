"""How programs end under `tidegate run`: as without it, and refused ones by one sentence."""

import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from tests.helpers.program import RunningProgram, tidegate_run
from tidegate.recording import read_records

pytestmark = pytest.mark.spark

ENDS_WHILE_A_QUERY_RUNS = """
import sys
from beside import START
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
other = spark.newSession()  # whose queries the first session does not list
rate = other.readStream.format("rate").option("rowsPerSecond", 10).load()
query = rate.writeStream.format("noop").queryName("of another session").start()
while '"of another session"' not in open(sys.argv[2]).read():
    query.awaitTermination(0.2)
print(__name__, sys.argv[1], START)
sys.exit(7)
"""


def test_through_spark_submit_with_its_exit_code_and_queries_of_all_sessions(tmp_path) -> None:
    path = subprocess.run(tidegate_run("--submit-path"), capture_output=True, text=True).stdout
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "beside.py").write_text("START = 'found beside it'\n")
    script = tmp_path / "program" / "job.py"
    script.write_text(ENDS_WHILE_A_QUERY_RUNS)
    records = tmp_path / "records" / "records.jsonl"
    records.parent.mkdir()
    records.touch()
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    command = [
        *(str(submit), "--master", "local[2]", "--conf", "spark.ui.enabled=false", path.strip()),
        *("--target", "5s", "--executors", "1:20", "--records", str(records.parent)),
        *(str(script), "--name", str(records)),
    ]
    with RunningProgram(tmp_path, command, PYSPARK_PYTHON=sys.executable) as program:
        assert program.wait() == 7, program.told()
    assert "__main__ --name found beside it" in program.stdout
    # Spark itself prints a Python program's standard error on standard output there.
    only = "tidegate: local[2] has no executors to scale: queries are only measured and recorded;"
    assert only in program.stdout
    assert "Traceback" not in program.stdout + program.stderr
    segments = [
        one for record in read_records(records.parent) for one in record.measurement.segments
    ]
    assert {one.name for one in segments} == {"of another session"}


def test_dynamic_allocation_is_refused_by_one_sentence(tmp_path) -> None:
    script = tmp_path / "job.py"
    script.write_text(
        "from pyspark.sql import SparkSession\n"
        "try:\n    SparkSession.builder.getOrCreate()\n"
        "except Exception:\n    print('the program took it for its own')\n"
    )
    words = ["--target", "5s", "--executors", "1:2", "--master", "local-cluster[1,1,1024]"]
    words += ["--conf", "spark.dynamicAllocation.enabled=true", str(script)]
    with RunningProgram(tmp_path, tidegate_run(*words)) as program:
        assert program.wait() == 2, program.told()
    said = [line for line in program.stderr.splitlines() if line.startswith("tidegate: ")]
    assert said == [
        "tidegate: spark.dynamicAllocation.enabled is true and would undo Tidegate's decisions; set"
        " it to false"
    ]
    assert "Traceback" not in program.stderr and program.stdout == ""
