"""Every code block of the pages: its language, its syntax, and that what it calls exists.

Python blocks run in `tests/spark/test_code_blocks.py`, except those that say why they cannot.
"""

import ast
import importlib
import importlib.util
import inspect
import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

import tidegate as tg
from tests.helpers.blocks import Block, blocks_of
from tests.helpers.pages import PAGES
from tests.helpers.places import ROOT
from tests.unit.test_docs import known_commands, make_targets
from tidegate.cli import app
from tidegate.commands.networkfile import read_network
from tidegate.spark.options import AttachOptions, StartOptions

BLOCKS = [block for page in PAGES for block in blocks_of(page)]
LANGUAGES = ("python", "bash", "", "json", "toml", "yaml", "text")
"""Nothing behind the fence stands for commands, as `bash` does."""
OTHERS = ("pip", "git", "cd", "spark-submit")
"""Programs of others, which are not looked into."""


def of(*languages: str) -> list[Any]:
    return [pytest.param(one, id=one.place) for one in BLOCKS if one.language in languages]


def test_blocks_are_found_with_what_is_said_about_them() -> None:
    text = "a\n\n```python\nx = 1\n```\n\n<!-- not run: needs a sea -->\n```bash\nmake help\n```\n"
    page = ROOT / "docs" / "made-up.md"
    assert blocks_of(page, text) == [
        Block(page, 4, "python", "x = 1\n", None),
        Block(page, 9, "bash", "make help\n", "needs a sea"),
    ]
    fences = sum(page.read_text("utf-8").count("\n```") for page in PAGES)
    assert 2 * len(BLOCKS) == fences, "a block is not closed, or is indented"


def test_every_block_has_a_language() -> None:
    assert [one.place for one in BLOCKS if one.language not in LANGUAGES] == []


def wrong_python(block: Block) -> list[str]:
    """What does not compile, imports that fail, and arguments that functions of ours lack."""
    text = f"flow{block.text}" if block.text.startswith(".") else block.text  # a step of a flow
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        return [f"{block.place}: {error}"]
    faults = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            module = importlib.import_module(node.module or "")
            faults += [
                f"{node.module} has no {one.name}"
                for one in node.names
                if not hasattr(module, one.name)
            ]
        elif isinstance(node, ast.Import):
            for one in node.names:
                importlib.import_module(one.name)
        elif isinstance(node, ast.Call):
            faults += _wrong_call(node)
    return faults


def _wrong_call(call: ast.Call) -> list[str]:
    """`tg.attach(...)` is the function; `.start(...)` and the like are those of a pipeline."""
    if not isinstance(call.func, ast.Attribute):
        return []
    name, on = call.func.attr, call.func.value
    if isinstance(on, ast.Name) and on.id == "tg":
        known = _arguments(getattr(tg, name, None))
        if known is None:
            return [f"tidegate has no {name}"]
    elif name in METHODS:  # Spark and Arrow have methods with other names of ours
        known = METHODS[name]
    else:
        return []
    asked = [one.arg for one in call.keywords if one.arg is not None]
    return [f"{name} has no argument {one}" for one in asked if known and one not in known]


def _arguments(function: Any) -> set[str] | None:
    """The names of a function's arguments; none of one that takes any."""
    if function is None:
        return None
    if function is tg.attach:
        return set(AttachOptions.__annotations__)
    known = inspect.signature(function).parameters
    return set() if any(one.kind is one.VAR_KEYWORD for one in known.values()) else set(known)


METHODS = {
    "start": set(StartOptions.__annotations__),
    "keyed": _arguments(tg.Stream.keyed),
    "cut": _arguments(tg.Stream.cut),
    "shed": {*(_arguments(tg.Stream.shed) or ()), *(_arguments(tg.Run.shed) or ())},
}


@pytest.mark.parametrize("block", of("python"))
def test_python_compiles_and_calls_what_exists(block: Block) -> None:
    assert wrong_python(block) == []


@pytest.mark.parametrize("block", of("json"))
def test_json_is_json(block: Block) -> None:
    json.loads(block.text)


@pytest.mark.parametrize("block", of("yaml"))
def test_yaml_is_yaml(block: Block) -> None:
    assert yaml.safe_load(block.text)


@pytest.mark.parametrize("block", of("toml"))
def test_toml_is_a_network_that_can_be_planned(block: Block, tmp_path: Path) -> None:
    if "operators" in tomllib.loads(block.text):
        file = tmp_path / "network.toml"
        file.write_text(block.text, encoding="utf-8")
        assert read_network(file) is not None


def commands_of(block: Block) -> list[list[str]]:
    """The commands of a block as words, without remarks; `\\` continues a line."""
    lines = block.text.replace("\\\n", " ").splitlines()
    lines = [line for line in lines if not re.match(r"\w+=\$\(", line)]  # a variable of the shell
    words = [shlex.split(line, comments=True) for line in lines]
    return [one for one in words if one]


def wrong_words(words: list[str]) -> list[str]:
    """What is wrong with one command."""
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):  # a variable before the command
        words = words[1:]
    program, *rest = words
    name = program.rpartition("/")[2]
    if name == "tidegate":
        return _wrong_tidegate([one for one in rest if one != "--verbose"])
    if name == "make":
        targets = [one for one in rest if "=" not in one]
        return [f"there is no target make {one}" for one in targets if one not in make_targets()]
    if name in ("python", "python3"):
        return _wrong_program(rest)
    return [] if name in OTHERS else [f"'{program}' is no command that is known here"]


def _wrong_tidegate(rest: list[str]) -> list[str]:
    name, *given = rest
    if name not in known_commands():
        return [f"there is no command tidegate {name}"]
    command = known_commands()[name]
    try:
        command.make_context(name, list(given), resilient_parsing=False)
    except SystemExit:
        return []
    except Exception as error:  # what click says of an option, an argument or a value
        return [f"tidegate {' '.join(rest)}: {getattr(error, 'message', error)}"]
    return []


def _wrong_program(rest: list[str]) -> list[str]:
    if rest[:1] == ["-m"]:
        if rest[1] == "pytest":
            paths = [one for one in rest[2:] if one.startswith("tests/")]
            return [f"there is no {one}" for one in paths if not (ROOT / one).exists()]
        found = importlib.util.find_spec(rest[1])
        return [] if found is not None else [f"there is no module {rest[1]}"]
    return [] if (ROOT / rest[0]).exists() else [f"there is no program {rest[0]}"]


@pytest.mark.parametrize("block", of("bash", ""))
def test_commands_exist_with_their_options(block: Block) -> None:
    assert [fault for words in commands_of(block) for fault in wrong_words(words)] == []


PLANS = [
    words
    for block in BLOCKS
    if block.language in ("bash", "")
    for words in commands_of(block)
    if words[:2] == ["tidegate", "plan"] and (ROOT / words[2]).exists()
]


def printed(words: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(ROOT)
    answer = CliRunner().invoke(app, words, env={"COLUMNS": "120"})
    assert answer.exit_code == 0, answer.output
    return answer.output


@pytest.mark.parametrize("words", PLANS, ids=" ".join)
def test_plans_of_the_pages_run(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert "cores: mean latency" in printed(words[1:], monkeypatch)


def test_the_page_shows_what_plan_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    shown = re.search(r"`\.venv/bin/tidegate (plan [^`]+)`:\n\n```text\n(.*?)```", page, re.DOTALL)
    assert shown is not None
    assert printed(shown[1].split(), monkeypatch).split() == shown[2].split()


WRONG = """
tidegate plan examples/vld.toml --cores many
tidegate plan examples/vld.toml --no-such-option 3
tidegate simulate
make nothing
python -m tidegate.no_such_module
python examples/no_such_program.py
swim
"""


def test_wrong_commands_are_found() -> None:
    block = Block(ROOT / "docs" / "made-up.md", 1, "bash", WRONG, None)
    assert all(len(wrong_words(words)) == 1 for words in commands_of(block))
    assert len(commands_of(block)) == 7


def test_wrong_python_is_found() -> None:
    page = ROOT / "docs" / "made-up.md"
    block = Block(page, 1, "python", "flow.start('x', targt='2 s')\ntg.swim(tg.count(per=1))", None)
    assert sorted(wrong_python(block)) == [
        "count has no argument per",
        "start has no argument targt",
        "tidegate has no swim",
    ]
    assert wrong_python(Block(page, 1, "python", "spark.readStream..., 1", None))
