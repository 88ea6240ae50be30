"""The paths, names, links and commands on the pages exist, and lists are shown as lists."""

import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main

import tidegate
from tests.helpers.pages import FENCE, PACKAGE, PAGES, code, code_spans, defined
from tests.helpers.places import ROOT
from tidegate.cli import app

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
PATH = re.compile(r"[\w-]+(/[\w.*-]+)*(\.(py|md|toml|lock|svg|png)|/)(::[\w.]+)?")
MODULE = re.compile(
    r"(tidegate|pipelines|models|forecast|workload|control|sim|view|apps|commands)(\.\w+)+"
)
OURS = re.compile(r"\btg\.([A-Za-z_]+)")
COMMAND = re.compile(r"(?:\S*/)?tidegate ([a-z]\w*)(.*)")
TARGET = re.compile(r"make ([a-z]\w*)\b")
HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)


def wrong_paths(page: Path, text: str) -> list[str]:
    """`control/policy.py`, of the repository, the package or beside the page; `file.py::Name`."""
    faults = []
    for span in code_spans(text):
        if not PATH.fullmatch(span) or Path(span).stem.isupper():
            continue
        path, _, name = span.partition("::")
        bases = (ROOT, PACKAGE, page.parent)
        here = [place for base in bases for place in base.glob(path.rstrip("/"))]
        if not here:
            faults.append(f"there is no {path}")
        elif name and not any(name in defined(place) for place in here if place.is_file()):
            faults.append(f"{path} has no {name}")
    return faults


def wrong_modules(page: Path, text: str) -> list[str]:
    """`tidegate.control.replay` or `control.replay`: modules, and what they define."""
    return [
        f"there is no {span}"
        for span in code_spans(text)
        if MODULE.fullmatch(span) and not _is_module(span.removeprefix("tidegate.").split("."))
    ]


def _is_module(parts: list[str]) -> bool:
    for length in range(len(parts), 0, -1):
        place = PACKAGE.joinpath(*parts[:length])
        file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        if file.is_file():
            return length == len(parts) or ".".join(parts[length:]) in defined(file)
    return False


def wrong_names(page: Path, text: str) -> list[str]:
    """`tg.count` and the like: what `import tidegate as tg` offers."""
    names = {name for part in code(text) for name in OURS.findall(part)}
    return [f"tidegate has no {name}" for name in sorted(names) if not _offered(name)]


def _offered(name: str) -> bool:
    try:
        return hasattr(tidegate, name)
    except ImportError:
        return False


def wrong_links(page: Path, text: str) -> list[str]:
    """Files and headings that links lead to; other sites are not looked at."""
    faults = []
    for target in LINK.findall(FENCE.sub("", text)):
        path, _, anchor = target.partition("#")
        if "://" in path or not ("." in path or anchor):  # another site; E[T](k) is a formula
            continue
        file = page.parent / path if path else page
        if path and not file.exists():
            faults.append(f"there is no {path} to link to")
        elif anchor and anchor not in anchors(file.read_text("utf-8") if path else text):
            faults.append(f"{path or page.name} has no heading #{anchor}")
    return faults


def anchors(text: str) -> set[str]:
    """The names that GitHub gives to headings."""
    seen: Counter[str] = Counter()
    found = set()
    for title in HEADING.findall(FENCE.sub("", text)):
        slug = re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return found


def wrong_commands(page: Path, text: str) -> list[str]:
    """`tidegate NAME` with its options, `tidegate bench NAME`, `make NAME`."""
    faults = []
    for part in code(text):
        if (asked := COMMAND.fullmatch(part)) is not None:
            faults += _wrong_command(asked[1], asked[2])
        if (made := TARGET.match(part)) is not None and made[1] not in make_targets():
            faults.append(f"there is no target make {made[1]}")
    return faults


@cache
def known_commands() -> dict[str, Any]:
    """The commands of `tidegate` with their parameters."""
    return typer.main.get_command(app).commands  # type: ignore[attr-defined, no-any-return]


def _wrong_command(name: str, rest: str) -> list[str]:
    commands = known_commands()
    if name not in commands:
        return [f"there is no command tidegate {name}"]
    if name == "bench":
        bench = next((word for word in rest.split() if word[0] not in "-["), "list")
        there = bench in ("list", "NAME") or (ROOT / "benchmarks" / f"{bench}.py").is_file()
        return [] if there else [f"there is no benchmark {bench}"]
    known = {one for option in commands[name].params for one in option.opts + option.secondary_opts}
    asked = set(re.findall(r"(?<=\s)--[a-z][\w-]*", rest)) - {"--help"}
    return [f"tidegate {name} has no option {option}" for option in sorted(asked - known)]


@cache
def make_targets() -> list[str]:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return re.findall(r"^([a-z][\w-]*):", makefile, re.MULTILINE)


ITEM = re.compile(r"(- |\* |\d+\. )")


def swallowed_lists(page: Path, text: str) -> list[str]:
    """Lists right below a line of text: GitHub shows a list there, the site one paragraph."""
    faults = []
    for paragraph in FENCE.sub("", text).split("\n\n"):
        lines = [line for line in paragraph.splitlines() if line and not line.startswith("#")]
        items = [bool(ITEM.match(line)) for line in lines]
        if any(items) and not items[0] and not lines[0].startswith((" ", "|")):
            faults.append(f"an empty line is missing before '{lines[items.index(True)]}'")
    return faults


CHECKS = (wrong_paths, wrong_modules, wrong_names, wrong_links, wrong_commands, swallowed_lists)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_what_a_page_names_exists(page: Path, check: Callable[[Path, str], list[str]]) -> None:
    assert check(page, page.read_text(encoding="utf-8")) == []


def test_every_command_is_listed() -> None:
    listed = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert [name for name in known_commands() if f"| `tidegate {name}" not in listed] == []


def section(text: str, title: str) -> str:
    """What stands under a heading of the second level."""
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


DESIGN = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")


def test_the_house_has_every_folder() -> None:
    named = set(code_spans(section(DESIGN, "The house")))
    folders = {file.parent.relative_to(PACKAGE).as_posix() for file in PACKAGE.rglob("*.py")}
    assert [folder for folder in sorted(folders - {"."}) if f"{folder}/" not in named] == []


PLAIN = frozenset(
    re.findall(
        r"\w+",
        """
    allocate answer apps assemble attached awaited bayes bench benching busy chart choice cli
    column command compile counter cpu daemon demo ds2 dynamic earlier elastic experiment explain
    explanation failure figure hpa identity init java layout learning likelihood logarithm lookup
    microbatch
    mixed negotiate networkfile outcome output parse planetlab priced queue recording running shape
    sharing sim simple simulate size sparkline square staleness statistic style summary svg table
    terminal top total tree unanchored uniform unit waiting workload
    feature frame logo matching vld
    detector fpd itemset reporter tweet
    calculator
    board book conserved expected market order sse transactor
    access benchmark clean data distinct grep page rolling sentence storm topology unique visitor
    extract hashtag number vocabulary
    cell flight near predict sphere track
    instance message model packed river sequential tree vht
    json line text wordcount
    mood phrase score sentiment
    example gradient
    campaign event identifier
    currency hot items nexmark selection user
    bulk estimate overhead rebalancing six timeline
    dynamics exchange instant moving paradigm parameter scaling skew
    age noted unshed
    averages comparison contender deviation mean policies printed usage
    address document network served server shared web
    cluster host port slow standalone
    answering child client hadoop hdfs yarn ivy jar kafka produce produced producing relock setting
    config ending flag launch script submit
    object s3
    """,
    )
)
"""Words of file names that are plain English, names of others, or forms of a listed word."""


def test_every_word_of_a_file_name_is_in_the_vocabulary_or_plain() -> None:
    listed = set(re.findall(r"[a-z]+", section(DESIGN, "Vocabulary").lower()))
    known = listed | PLAIN
    words = {
        word
        for file in PACKAGE.rglob("*.py")
        for part in file.relative_to(PACKAGE).with_suffix("").parts
        for word in part.strip("_").split("_")
    }
    assert sorted(word for word in words if not {word, word.rstrip("s"), f"{word}s"} & known) == []


def repeated(walk: str) -> list[str]:
    """Files that a walk comes through twice."""
    steps = Counter(span for span in code_spans(walk) if span.endswith(".py"))
    return [path for path, times in steps.items() if times > 1]


@pytest.mark.parametrize("title", ["A row's way", "A measurement's way"])
def test_a_walk_never_goes_back(title: str) -> None:
    walk = section(DESIGN, title)
    assert len({span for span in code_spans(walk) if span.endswith(".py")}) > 15
    assert repeated(walk) == []


def test_a_walk_that_goes_back_is_found() -> None:
    assert repeated("`a/one.py`, then `a/two.py`, and `a/one.py` again") == ["a/one.py"]


MADE_UP = """# A page

See `control/no_such_file.py`, `control/controller.py::NoSuchClass`, `tests/unit/no_such_test.py`,
`models/no_such_room/` and `README.md`, which exists.
The module `tidegate.control.no_such_module` and `models.queueing.stations.Queues`, which exists.
[A link](no-such-page.md), [an anchor](#no-such-heading), [a good one](#a-page).
Run `tidegate no_such_command`, `tidegate plan FILE.toml --no-such-option`, `tidegate bench nothing`
or `make nothing`; `make test` exists, and so does `tidegate plan FILE.toml --cores 3`.

```python
tg.no_such_function(tg.count())
```

A list:
- of one
"""


def test_what_does_not_exist_is_found() -> None:
    page = ROOT / "docs" / "made-up.md"
    faults = [fault for check in CHECKS for fault in check(page, MADE_UP)]
    assert faults == [
        "there is no control/no_such_file.py",
        "control/controller.py has no NoSuchClass",
        "there is no tests/unit/no_such_test.py",
        "there is no models/no_such_room/",
        "there is no tidegate.control.no_such_module",
        "tidegate has no no_such_function",
        "there is no no-such-page.md to link to",
        "made-up.md has no heading #no-such-heading",
        "there is no command tidegate no_such_command",
        "tidegate plan has no option --no-such-option",
        "there is no benchmark nothing",
        "there is no target make nothing",
        "an empty line is missing before '- of one'",
    ]


def test_every_page_is_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        targets = (link.partition("#")[0] for link in LINK.findall(page.read_text("utf-8")))
        linked = ((page.parent / path).resolve() for path in targets if path.endswith(".md"))
        waiting += [file for file in linked if file.exists()]
    assert set(PAGES) <= reached
