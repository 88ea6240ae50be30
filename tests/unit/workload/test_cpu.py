"""CPU series: generated ones look like a server's, and a file's mistakes are told in a sentence."""

import numpy as np
import pytest

from tidegate.errors import AskedWrongly
from tidegate.workload.cpu import cpu_series, read_cpu_series


def test_a_generated_series_is_repeatable_bounded_and_bursty() -> None:
    series = cpu_series(nodes=10, samples=2000, seed=4)
    assert np.array_equal(series, cpu_series(nodes=10, samples=2000, seed=4))
    assert not np.array_equal(series, cpu_series(nodes=10, samples=2000, seed=5))
    assert series.min() == 0.0
    assert series.max() <= 100.0
    assert (series > 70).mean() > 0.01
    busy = series[:, series.std(axis=0) > 0]
    before, after = busy[:-1] - busy.mean(0), busy[1:] - busy.mean(0)
    assert (before * after).sum() / (before**2).sum() > 0.3  # the next sample is like this one


def test_a_series_is_read_from_a_file(tmp_path) -> None:
    path = tmp_path / "cpu.csv"
    path.write_text("sample,node0,node1\n0,23,47\n1,55,4\n")
    assert read_cpu_series(str(path)).tolist() == [[23.0, 47.0], [55.0, 4.0]]


@pytest.mark.parametrize(
    "text, message",
    [
        ("minute,count\n0,1\n", "does not begin with a header"),
        ("sample,node0\n", "does not begin with a header"),
        ("sample,node0\n0,x\n", "not a number"),
        ("sample,node0,node1\n0,1\n", "different lengths"),
        ("sample,node0\n0,101\n", "outside 0 to 100"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path, text: str, message: str) -> None:
    path = tmp_path / "cpu.csv"
    path.write_text(text)
    with pytest.raises(AskedWrongly, match=message):
        read_cpu_series(str(path))
    with pytest.raises(AskedWrongly, match="there is no file"):
        read_cpu_series(str(tmp_path / "none.csv"))


@pytest.mark.parametrize("content", [b"sample,node0\n0,\xde\n", b"PAR1\x15\x04\x00\xff"])
def test_a_file_that_is_no_text_is_refused(tmp_path, content: bytes) -> None:
    path = tmp_path / "cpu.parquet"
    path.write_bytes(content)
    with pytest.raises(AskedWrongly, match="cannot be read as CSV"):
        read_cpu_series(str(path))
