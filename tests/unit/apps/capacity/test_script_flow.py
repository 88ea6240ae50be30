"""Scripts that can be calibrated, and one sentence for those that cannot; without Spark."""

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidegate.apps.capacity.script_flow import script_flow
from tidegate.errors import AskedWrongly


@pytest.fixture(autouse=True)
def own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    pq.write_table(pa.table({"ad": ["a"]}), tmp_path / "rows.parquet")
    return tmp_path / "rows.parquet"


def test_a_script_is_loaded_and_not_run(tmp_path: Path, sample: Path) -> None:
    (tmp_path / "beside_it.py").write_text("NAME = 'ads'\n")
    script = tmp_path / "clicks.py"
    script.write_text(
        "from beside_it import NAME\n"
        "def flow(rows):\n    return rows\n"
        "if __name__ == '__main__':\n    raise SystemExit(3)\n"
    )
    assert script_flow(script, sample).name == "clicks"
    assert not script_flow(script, sample).stretched


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "has no function flow"),
        ("flow = 3", "has no function flow"),
        ("def flow(): pass", "cannot be called with one streaming DataFrame"),
        ("def flow(rows, other): pass", "cannot be called with one streaming DataFrame"),
        ("import no_such_module_anywhere", "cannot be loaded .ModuleNotFoundError"),
        ("def flow(rows:", "cannot be loaded .SyntaxError"),
    ],
)
def test_other_scripts_are_refused(tmp_path: Path, sample: Path, text: str, says: str) -> None:
    script = tmp_path / "clicks.py"
    script.write_text(text)
    with pytest.raises(AskedWrongly, match=says):
        script_flow(script, sample)


def test_no_script_is_refused(tmp_path: Path, sample: Path) -> None:
    with pytest.raises(AskedWrongly, match="there is no script"):
        script_flow(tmp_path / "none.py", sample)
