"""Reading networks: sound ones, and every way in which one can be unsound."""

from pathlib import Path

import pytest

from tests.helpers.places import EXAMPLES
from tidegate.commands.networkfile import read_network
from tidegate.control.allocation.allocate import assign
from tidegate.errors import AskedWrongly
from tidegate.models.queueing.stations import MODELS, Queues

SOUND = """\
rate = 13.0
[operators.extract]
service_rate = 1.6
[operators."two words"]
service_rate = 4   # a whole number will do
service_scv = 0.5

[[edges]]
from = "source"
to = "extract"
[[edges]]
from = "extract"
to = "two words"
ratio = 2.5
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "network.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_sound_file(tmp_path: Path) -> None:
    network = read_network(write(tmp_path, SOUND))
    assert network.rate == 13.0
    assert network.names == ("extract", "two words")
    assert network.operators[1].service_rate == 4.0
    assert (network.operators[1].arrival_scv, network.operators[1].service_scv) == (1.0, 0.5)
    assert [(e.origin, e.target, e.ratio) for e in network.edges] == [
        ("source", "extract", 1.0),
        ("extract", "two words", 2.5),
    ]


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("service_rate = 1.6", "service_rate = 0", 3, "service_rate of operator 'extract' is 0"),
        ("service_rate = 1.6", "service_rate = -1", 3, "is -1, but must be a number above zero"),
        ("service_rate = 1.6", "service_rate = 'fast'", 3, "is 'fast', but must be a number"),
        ("service_rate = 1.6", "service_rate = true", 3, "is True, but must be a number"),
        ("service_rate = 1.6", "service_rate = nan", 3, "is nan"),
        ("service_rate = 1.6", "", 2, "service_rate of operator 'extract' is missing"),
        ("service_rate = 1.6", "service_rat = 1.6", 3, "did you mean 'service_rate'?"),
        ("service_scv = 0.5", "service_scv = -0.5", 6, "service_scv of operator 'two words'"),
        ("service_scv = 0.5", "servce_scv = 0.5", 6, "did you mean 'service_scv'?"),
        ("rate = 13.0", "rate = 0.0", 1, "rate is 0.0"),
        ("rate = 13.0", "rates = 13.0", 1, "did you mean 'rate'?"),
        ("ratio = 2.5", "ratio = -2.5", 14, "ratio of the edge from 'extract' to 'two words'"),
        ("ratio = 2.5", "ratios = 2.5", 14, "did you mean 'ratio'?"),
        ("ratio = 2.5", "ratio = 0", 4, "no tuple reaches operator 'two words'"),
        (
            'to = "extract"',
            'to = "extrct"',
            10,
            "unknown operator 'extrct'; did you mean 'extract'",
        ),
        ('from = "extract"', 'from = "sorce"', 12, "did you mean 'source'?"),
        ('to = "two words"', 'to = "source"', 13, "no edge can lead to 'source'"),
        ('to = "two words"', "", 11, "the edge has no 'to'"),
        ('to = "two words"', "to = 7", 13, "must be an operator's name"),
        ('from = "source"', 'from = "two words"', 2, "no tuple reaches operator 'extract'"),
        ("[operators.extract]", "[operators.source]", 2, "give the operator another name"),
    ],
)
def test_an_unsound_file_names_its_line(
    tmp_path: Path, old: str, new: str, line: int, words: str
) -> None:
    assert old in SOUND
    path = write(tmp_path, SOUND.replace(old, new, 1))
    with pytest.raises(AskedWrongly) as refusal:
        read_network(path)
    assert f"network.toml, line {line}: " in str(refusal.value)
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_inline_tables_name_the_line_of_their_key(tmp_path: Path) -> None:
    text = """\
rate = 1
operators = { a = { service_rate = 2 } }
edges = [
  { from = "source", to = "b" },
]
"""
    with pytest.raises(AskedWrongly, match="line 3: an edge names an unknown operator 'b'"):
        read_network(write(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "rate is missing"),
        ("rate = 1", "there is no operator"),
        ("rate = 1\n[operators]\na = 3", "line 3: operator 'a' must be a table"),
        ("rate = 1\nedges = 4\n[operators.a]\nservice_rate = 1", "line 2: edges must be tables"),
        ("rate = 1\n[operators.a\n", "is not valid TOML"),
        ("rate = = 1", "line 1"),
    ],
)
def test_hardly_a_network(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(AskedWrongly) as refusal:
        read_network(write(tmp_path, text))
    assert words in str(refusal.value)


def test_what_is_no_text_file(tmp_path: Path) -> None:
    with pytest.raises(AskedWrongly, match="there is no file"):
        read_network(tmp_path / "none.toml")
    with pytest.raises(AskedWrongly, match="cannot be read"):
        read_network(tmp_path)
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(AskedWrongly, match="not UTF-8"):
        read_network(binary)


def test_a_loop_that_never_ends_names_file_and_operators(tmp_path: Path) -> None:
    loop = SOUND + '[[edges]]\nfrom = "two words"\nto = "extract"\nratio = 0.4\n'
    with pytest.raises(
        AskedWrongly, match=r"network.toml: the loop through 'extract', 'two words'"
    ):
        read_network(write(tmp_path, loop))


@pytest.mark.parametrize(("example", "best"), [("vld", [10, 11, 1]), ("fpd", [6, 13, 3])])
def test_the_papers_applications_get_the_papers_allocation(example: str, best: list[int]) -> None:
    network = read_network(EXAMPLES / f"{example}.toml")
    for model in MODELS:
        assert assign(Queues.of_network(network, model), 22).cores.tolist() == best


def test_figure_2_splits_joins_and_loops() -> None:
    network = read_network(EXAMPLES / "split-join-loop.toml")
    queues = Queues.of_network(network, "gigk")
    assert queues.visit_ratio[0] > 1.0  # the loop brings tuples back to A
    assert queues.variability.tolist() == [1.0, 0.75, 1.0, 1.5, 1.0]
