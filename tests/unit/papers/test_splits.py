"""Splits of cores and their neighbourhood."""

from hypothesis import given
from hypothesis import strategies as st

from tidegate.papers.splits import neighbours, shown

SPLITS = st.lists(st.integers(1, 8), min_size=2, max_size=4).map(tuple)


@given(split=SPLITS, count=st.integers(1, 30))
def test_neighbours_have_the_same_cores_and_come_nearest_first(
    split: tuple[int, ...], count: int
) -> None:
    found = neighbours(split, count)
    assert len(set(found)) == len(found) <= count
    assert split not in found
    for other in found:
        assert sum(other) == sum(split) and min(other) >= 1
    far = [sum(abs(a - b) for a, b in zip(split, other, strict=True)) for other in found]
    assert far == sorted(far)


def test_a_split_is_written_as_in_the_paper() -> None:
    assert shown((10, 11, 1)) == "10:11:1"
