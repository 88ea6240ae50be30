"""What Spark's Python daemon imports before it forks workers."""

import subprocess
import sys

from tests.helpers.places import SOURCE

SCRIPT = """
import sys
import tidegate.spark.python_daemon
for name in ("tidegate.spark.batch.keyed_task", "tidegate.pipelines.functions.window"):
    assert name in sys.modules, name
print([name for name in ("numba", "scipy") if name in sys.modules])
"""


def test_tasks_need_no_compiled_code() -> None:
    """Executors are often on machines that have compiled nothing yet, which takes seconds."""
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == "[]"
