"""Partitions that nothing is read from although they grow."""

from hypothesis import given
from hypothesis import strategies as st

from tidegate.control.lag import Lag, PartitionLag
from tidegate.control.sources.stuck_partitions import STUCK_S, StuckPartitions


def part(number: int, behind: int, taken: int, arrived: int = 10) -> PartitionLag:
    return PartitionLag(
        topic="t", partition=number, behind_rows=behind, taken_rows=taken, arrived_rows=arrived
    )


def stuck(found: tuple[PartitionLag, ...]) -> list[int]:
    return [one.partition for one in found if one.stuck]


def test_a_partition_that_grows_and_is_not_read_is_stuck() -> None:
    watch = StuckPartitions()
    for tick in range(30):
        found = watch.marked([part(0, 5, 10), part(1, 10 * tick + 1, 0)], 1, float(tick))
        assert stuck(found) == ([1] if tick >= STUCK_S else [])
    lag = Lag(partitions=found)
    assert (lag.rows, lag.reachable_rows) == (296, 5), "its rows buy no cores"
    found = watch.marked([part(0, 5, 10), part(1, 100, 50)], 1, 31.0)
    assert stuck(found) == [], "it is read again"


def test_a_silent_partition_is_not_stuck() -> None:
    watch = StuckPartitions()
    for tick in range(60):
        assert stuck(watch.marked([part(0, 0, 10), part(1, 7, 0, 0)], 1, float(tick))) == []


def test_a_long_batch_makes_no_partition_stuck() -> None:
    watch = StuckPartitions()
    for tick in range(60):
        taken = 10 if tick % 20 == 0 else 0
        found = watch.marked([part(0, tick, taken), part(1, tick, 0)], int(taken > 0), float(tick))
        assert stuck(found) == [], "two batches are too few to tell"
        if tick == 39:
            break


@given(
    st.lists(
        st.tuples(
            st.integers(0, 3),
            st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=3),
        ),
        max_size=40,
    )
)
def test_only_partitions_without_progress_are_stuck(ticks) -> None:
    """Whatever happens: a partition that was read in this tick, or has no rows, is not stuck."""
    watch = StuckPartitions()
    for number, (batches, sizes) in enumerate(ticks):
        given_ = [
            part(place, behind, taken if batches else 0)
            for place, (behind, taken) in enumerate(sizes)
        ]
        for one in watch.marked(given_, batches, 3.0 * number):
            assert not (one.stuck and batches and (one.taken_rows or not one.behind_rows))
