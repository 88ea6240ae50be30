"""Options of the micro-benchmark: the paper's by default, and wrong ones in one sentence."""

import pytest

from tidegate.apps.micro.options import MicroOptions, micro_options
from tidegate.errors import AskedWrongly


def test_the_defaults_are_the_papers() -> None:
    options = micro_options({})
    assert str(options.distribution) == "zipf:10000,0.5/30.0"
    assert (options.payload, options.row_s, options.state_kb) == (128, 0.001, 32.0)


def test_options_are_read_from_texts() -> None:
    options = micro_options({"keys": "50", "omega": "16", "row_ms": "0.5", "fill": "yes"})
    assert options == MicroOptions(keys=50, omega=16.0, row_ms=0.5, fill=True)
    assert options.distribution.every_ms == 3750


def test_without_shuffles_the_keys_stay() -> None:
    assert str(MicroOptions(omega=0.0).distribution) == "zipf:10000,0.5"


@pytest.mark.parametrize("state_kb", [32.0, 1024.0])
def test_all_keys_together_have_the_state_of_all_shards(state_kb: float) -> None:
    options = MicroOptions(state_kb=state_kb, shards=64)
    assert options.keys * options.key_bytes == pytest.approx(state_kb * 1024 * 64, rel=0.01)
    assert options.key_bytes % 8 == 0


@pytest.mark.parametrize(
    "extra",
    [
        {"keys": "ten"},
        {"keys": "0"},
        {"omega": "-1"},
        {"payload": "100"},
        {"payload": "0"},
        {"row_ms": "-2"},
        {"shards": "0"},
        {"state_kb": "32768"},
        {"state_kb": "nan"},
        {"fill": "maybe"},
    ],
)
def test_wrong_options_are_one_sentence(extra: dict[str, str]) -> None:
    with pytest.raises(AskedWrongly) as caught:
        micro_options(extra)
    assert "\n" not in str(caught.value)
