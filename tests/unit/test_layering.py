"""Imports go downward only, and the rooms that decide are pure. Read from the source, not run."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "tidegate"

BELOW = {
    "columns": set(),
    "errors": set(),
    "logs": set(),
    "units": {"errors"},
    "progress": set(),
    "benching": {"errors", "progress"},
    "models": {"errors", "units"},
    "forecast": {"errors", "units"},
    "workload": {"errors", "units"},
    "pipelines": {"errors", "units"},
    "control": {"columns", "errors", "units", "models", "forecast"},
    "recording": {"errors", "control"},
    "sim": {
        "columns",
        "errors",
        "units",
        "progress",
        "models",
        "forecast",
        "workload",
        "pipelines",
        "control",
    },
    "spark": {
        "columns",
        "errors",
        "units",
        "models",
        "forecast",
        "workload",
        "pipelines",
        "control",
        "recording",
        "logs",
        "view",
    },
    "view": {"errors", "units", "progress", "control"},
}
"""What each room may import besides itself. `apps` may import all of these but `benching`,
`papers` all of them and `apps`, `commands` those and `papers`, and `cli` everything."""
BELOW["compiled"] = {"models", "forecast", "control", "sim", "workload"}
BELOW["apps"] = set(BELOW) - {"benching"}
BELOW["papers"] = set(BELOW)
BELOW["commands"] = set(BELOW)
BELOW["cli"] = set(BELOW)
BELOW["__main__"] = {"cli"}
BELOW["submit"] = {"cli"}

PURE = {"models", "forecast", "workload", "control"}
IMPURE_MODULES = {"pyspark", "py4j", "time", "random", "threading", "subprocess", "socket"}
IMPURE_CALLS = {
    "datetime.now",
    "datetime.utcnow",
    "datetime.today",
    "date.today",
    "np.random.rand",
    "np.random.randn",
    "np.random.random",
    "np.random.seed",
    "np.random.normal",
    "np.random.uniform",
    "np.random.poisson",
    "np.random.exponential",
    "np.random.choice",
}


TYPES_ONLY = {
    ("pipelines/stream.py", "tidegate.spark.options"),
    ("pipelines/stream.py", "tidegate.spark.run"),
}
"""Upward imports under TYPE_CHECKING: `Stream.start` takes the body's options and returns its
`Run`, and type checkers should know. Nothing is imported at run time."""

DOOR = "door"
"""The files of control/ itself: data types, the controller, and what puts them together."""
ASSEMBLERS = {"assemble", "assembly", "rehearsal", "replay"}
"""The files of the door that may import mechanisms."""
BESIDE = {
    ("effect", "sources"): "a cause why cores have no effect may be the source's partitions",
    ("latency", "allocation"): "its planner is DRS's allocator",
    ("learning", "shards"): "the imbalance to expect is the one that the balancer leaves",
    ("placement", "shards"): "a split divides an executor's shards by the balancer's rule",
}
"""Mechanisms that import another one, and why. All may import `learning` and the door."""


def mechanism(parts: tuple[str, ...] | list[str]) -> str:
    """The folder of control/ that a file or module is in."""
    return parts[0] if len(parts) > 1 else DOOR


def mechanism_faults(root: Path) -> list[str]:
    """Imports inside control/ that go from the door to a mechanism, or between mechanisms."""
    found = []
    for path in sorted((root / "control").rglob("*.py")):
        relative = path.relative_to(root / "control")
        home = mechanism(relative.parts)
        if home == DOOR and relative.stem in ASSEMBLERS:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for module in imported(node, Path("control") / relative):
                parts = module.split(".")
                if parts[:2] != ["tidegate", "control"] or len(parts) < 3:
                    continue
                other = mechanism(parts[2:]) if (root / "control" / parts[2]).is_dir() else DOOR
                allowed = {home, DOOR, *(() if home == DOOR else ("learning",))}
                if other not in allowed and (home, other) not in BESIDE:
                    found.append(f"control/{relative} imports {module}")
    return found


def faults(root: Path) -> list[str]:
    """Every import and call below `root` that breaks a rule, with its place."""
    found = []
    for path in sorted(root.rglob("*.py")):
        relative = path.relative_to(root)
        room = relative.parts[0].removesuffix(".py")
        if room == "__init__":
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        typed = set(under_type_checking(tree))
        for node in ast.walk(tree):
            if not isinstance(node, ast.Import | ast.ImportFrom | ast.Call):
                continue
            place = f"{relative}:{node.lineno}"
            for module in imported(node, relative):
                if (relative.as_posix(), module) in TYPES_ONLY and node in typed:
                    continue
                found += [f"{place} {fault}" for fault in import_faults(room, module)]
            if room in PURE and isinstance(node, ast.Call):
                name = ".".join(dotted(node.func)[-3:])
                if any(name == call or name.endswith(f".{call}") for call in IMPURE_CALLS):
                    found.append(f"{place} calls {name}")
    return found


def under_type_checking(tree: ast.AST) -> Iterator[ast.AST]:
    """Everything below `if TYPE_CHECKING:`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and dotted(node.test)[-1:] == ["TYPE_CHECKING"]:
            for statement in node.body:
                yield from ast.walk(statement)


def imported(node: ast.AST, relative: Path) -> list[str]:
    """The modules that an import statement names, relative ones made absolute."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    module = node.module or ""
    if node.level:
        package = ("tidegate", *relative.parts[: len(relative.parts) - node.level])
        module = ".".join((*package, *([module] if module else [])))
    if module == "tidegate":
        return [f"tidegate.{alias.name}" for alias in node.names]
    return [module]


def import_faults(room: str, module: str) -> list[str]:
    parts = module.split(".")
    if parts[0] != "tidegate":
        impure = room in PURE and parts[0] in IMPURE_MODULES
        return [f"imports {module}, but {room} is pure"] if impure else []
    if len(parts) == 1 or parts[1].startswith("__"):
        return []
    if room not in BELOW:
        return [f"is in '{room}', which has no place in the order yet"]
    if parts[1] == room or parts[1] in BELOW[room]:
        return []
    return [f"imports {module}, which is not below {room}"]


def dotted(node: ast.expr) -> list[str]:
    if isinstance(node, ast.Attribute):
        return [*dotted(node.value), node.attr]
    return [node.id] if isinstance(node, ast.Name) else []


def test_the_tree_keeps_the_rules() -> None:
    assert faults(SOURCE) == []


def test_mechanisms_keep_to_themselves() -> None:
    assert mechanism_faults(SOURCE) == []


@pytest.mark.parametrize(
    ("file", "line", "count"),
    [
        ("controller.py", "from tidegate.control.shards.balancer import Balancer", 1),
        ("assemble.py", "from tidegate.control.shards.balancer import Balancer", 0),
        ("shedding/a.py", "from tidegate.control.latency.policy import LatencyPolicy", 1),
        ("shedding/a.py", "from tidegate.control.learning.smoothing import Alpha", 0),
        ("latency/a.py", "from tidegate.control.allocation.allocate import assign", 0),
        ("shards/a.py", "from tidegate.control.decision import Decision", 0),
    ],
)
def test_a_mechanism_that_imports_another_is_found(
    tmp_path: Path, file: str, line: str, count: int
) -> None:
    for folder in ("shards", "shedding", "latency", "allocation", "learning"):
        (tmp_path / "control" / folder).mkdir(parents=True)
    (tmp_path / "control" / file).write_text(line + "\n")
    assert len(mechanism_faults(tmp_path)) == count


def test_every_room_is_read() -> None:
    rooms = {path.relative_to(SOURCE).parts[0] for path in SOURCE.rglob("*.py")}
    assert {"models", "control", "spark", "workload", "cli.py"} <= rooms


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("models/a.py", "from tidegate.control.decision import Decision"),
        ("models/a.py", "from ..control.decision import Decision"),
        ("models/a.py", "from tidegate import spark"),
        ("control/a.py", "import tidegate.spark.session"),
        ("control/a.py", "def f():\n    from tidegate.sim import network"),
        ("spark/a.py", "from tidegate.commands.output import out"),
        ("spark/a.py", "from tidegate.sim.queueing.network import run"),
        ("view/a.py", "from tidegate.spark.measure.query_meter import QueryMeter"),
        ("errors.py", "from tidegate.models import network"),
        ("attic/a.py", "from tidegate.errors import TidegateError"),
        ("control/a.py", "import time"),
        ("forecast/a.py", "from time import sleep"),
        ("models/a.py", "def f():\n    from pyspark.sql import SparkSession"),
        ("control/a.py", "import random"),
        ("control/a.py", "import datetime\nx = datetime.datetime.now()"),
        ("models/a.py", "import numpy as np\nx = np.random.rand(3)"),
    ],
)
def test_a_wrong_import_is_found(tmp_path: Path, file: str, line: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(line + "\n")
    assert len(faults(tmp_path)) == 1


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("models/a.py", "from tidegate.errors import AskedWrongly"),
        ("models/a.py", "from tidegate.models.b import c"),
        ("models/a.py", "import numpy as np\nx = np.random.default_rng(1)"),
        ("control/a.py", "from tidegate.models.queueing.network import Network"),
        ("spark/a.py", "import time\nfrom tidegate.control.measurement import Measurement"),
        ("cli.py", "from tidegate import __version__\nfrom tidegate.commands import demo"),
    ],
)
def test_a_right_import_is_let_through(tmp_path: Path, file: str, line: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(line + "\n")
    assert faults(tmp_path) == []
