"""Anchors whose blocks Spark put on few executors are made again, a bounded number of times."""

import dataclasses
from collections.abc import Iterator

import pyarrow as pa
import pytest

from tidegate.pipelines.graph import Map, Segment, TaskBounds
from tidegate.spark.batch import anchors as module
from tidegate.spark.batch.anchors import ALONE, FIRST_WAIT, TRIES, Anchor, Anchors
from tidegate.spark.batch.next_allocation import NextAllocation
from tidegate.spark.batch.plan import OperatorPlan
from tidegate.spark.batch.spark_work import SparkWork

ROWS = pa.schema([("n", pa.int64())])

TWO = frozenset({"executor_h_1", "executor_h_2"})
LOPSIDED = ("executor_h_1",) * 4
EVEN = ("executor_h_1", "executor_h_2") * 2
ROUTE = (0, 1, 2, 3)


class Frame:
    """A cached frame whose blocks can be dropped once."""

    def __init__(self) -> None:
        self.dropped = 0

    def unpersist(self) -> None:
        self.dropped += 1


class Cluster:
    """Imitates Spark: the blocks of each new anchor lie where `places` says."""

    def __init__(self, places: Iterator[tuple[str, ...]]) -> None:
        self.places = places
        self.frames: list[Frame] = []

    def made(self, session, tasks, executors) -> Anchor:
        self.frames.append(Frame())
        places = () if executors == ALONE else next(self.places)
        return Anchor(self.frames[-1], tasks, executors, places)

    @property
    def held(self) -> int:
        """Frames whose blocks are still cached."""
        assert all(frame.dropped <= 1 for frame in self.frames)
        return sum(not frame.dropped for frame in self.frames)


@pytest.fixture
def cluster(monkeypatch):
    def of(*places: tuple[str, ...], shared: bool = False) -> tuple[Cluster, Anchors]:
        def endless() -> Iterator[tuple[str, ...]]:
            yield from places
            while True:
                yield places[-1]

        imitated = Cluster(endless())
        monkeypatch.setattr(module, "_made", imitated.made)
        return imitated, Anchors(None, shared=shared)

    return of


def test_an_even_anchor_is_made_once(cluster):
    imitated, anchors = cluster(EVEN)
    for _ in range(1000):
        anchors.follow("n", ROUTE, 4, TWO)
    assert len(imitated.frames) == 1


def test_a_lopsided_anchor_is_made_again_at_once(cluster):
    imitated, anchors = cluster(LOPSIDED, EVEN)
    anchors.follow("n", ROUTE, 4, TWO)
    assert anchors._kept["n"].places == EVEN
    assert len(imitated.frames) == 2 and imitated.held == 1


def test_places_are_forgotten_when_no_executor_is_left(cluster):
    """A preview would balance the new tasks by the places of others."""
    _, anchors = cluster(EVEN)
    anchors.follow("n", ROUTE, 4, TWO)
    assert anchors.nodes("n") == EVEN
    anchors.follow("n", (0, 1, 1, 0), 2, ALONE)
    assert anchors.nodes("n") == ()


def test_the_most_even_of_a_few_is_kept(cluster):
    three = ("executor_h_1",) * 3 + ("executor_h_2",)
    imitated, anchors = cluster(LOPSIDED, three, LOPSIDED)
    anchors.follow("n", ROUTE, 4, TWO)
    assert anchors._kept["n"].places == three
    assert len(imitated.frames) == TRIES and imitated.held == 1


def test_an_anchor_that_stayed_lopsided_is_made_again_later_and_ever_less_often(cluster):
    imitated, anchors = cluster(LOPSIDED)
    made = []
    for _ in range(10 * FIRST_WAIT):
        anchors.follow("n", ROUTE, 4, TWO)
        anchors.of("n", 4, TWO)
        made.append(len(imitated.frames))
    assert made[0] == made[FIRST_WAIT - 1] == TRIES
    assert made[FIRST_WAIT] == 2 * TRIES
    assert made[3 * FIRST_WAIT] == 3 * TRIES
    assert made[-1] == 4 * TRIES and imitated.held == 1


def test_one_that_is_no_more_even_does_not_replace_the_one_that_has_the_state(cluster):
    imitated, anchors = cluster(LOPSIDED)
    for _ in range(2 * FIRST_WAIT):
        anchors.follow("n", ROUTE, 4, TWO)
    assert len(imitated.frames) == 2 * TRIES
    assert anchors._kept["n"].frame is imitated.frames[0] and imitated.held == 1


def test_it_becomes_even_when_the_busy_executor_is_free(cluster):
    _, anchors = cluster(*[LOPSIDED] * TRIES, EVEN)
    for _ in range(FIRST_WAIT + 1):
        anchors.follow("n", ROUTE, 4, TWO)
    assert anchors._kept["n"].places == EVEN
    assert "n" not in anchors._waits


def test_other_executors_begin_anew(cluster):
    imitated, anchors = cluster(LOPSIDED)
    anchors.follow("n", ROUTE, 4, TWO)
    anchors.follow("n", ROUTE, 4, TWO | {"executor_h_3"})
    assert len(imitated.frames) == 2 * TRIES and imitated.held == 1
    assert anchors._waits["n"] == (FIRST_WAIT, 2 * FIRST_WAIT)


def test_a_block_without_a_place_counts_as_lopsided():
    assert Anchor(Frame(), 4, TWO, ("executor_h_1", "executor_h_2", "executor_h_1", "")).surplus
    assert not Anchor(Frame(), 3, TWO, ("executor_h_1", "executor_h_2", "executor_h_1")).surplus


def test_in_one_process_there_is_no_place_to_choose(cluster):
    imitated, anchors = cluster(LOPSIDED)
    for _ in range(100):
        anchors.of("n", 4, ALONE)
    assert len(imitated.frames) == 1


def test_a_map_keeps_its_numbers_until_its_places_change(cluster):
    """Shares are those of certain executors: no slot draws a large share to another one."""
    one, other = "executor_h_1", "executor_h_2"
    _, anchors = cluster((one, other), (other, one))
    even, uneven = (0, 1, 0, 1), (1, 1, 0, 1)
    assert anchors.follow("m", even, 2, TWO, stateful=False) == even
    assert anchors.follow("m", uneven, 2, TWO, stateful=False) == uneven
    more = TWO | {"executor_h_3"}
    swapped = anchors.follow("m", uneven, 2, more, stateful=False)
    assert swapped == (0, 0, 1, 0), "the large share stays on the second executor"
    assert anchors.follow("m", (0, 1) * 3, 2, more, stateful=False) == (0, 1) * 3, "new slots"


def test_the_slots_of_a_map_follow_executors_even_where_those_of_a_host_share_a_cache(cluster):
    one, other = "executor_h_1", "executor_h_2"
    _, anchors = cluster((one, other), (other, one), shared=True)
    uneven = (1, 1, 0, 1)
    assert anchors.follow("m", uneven, 2, TWO, stateful=False) == uneven
    swapped = anchors.follow("m", uneven, 2, TWO | {"executor_h_3"}, stateful=False)
    assert swapped == (0, 0, 1, 0), "the large share stays on the second executor"


def test_an_anchor_that_is_no_longer_needed_is_dropped(cluster):
    imitated, anchors = cluster(LOPSIDED)
    anchors.follow("m", ROUTE, 4, TWO, stateful=False)
    assert imitated.held == 1
    anchors.let_go("m")
    anchors.let_go("m")
    assert imitated.held == 0
    assert anchors.follow("m", ROUTE, 4, TWO, stateful=False) == ROUTE, "it begins anew"
    assert imitated.held == 1


def test_the_anchor_of_a_map_goes_with_its_deal(cluster):
    """`SparkWork.operators` is what a micro-batch asks for its tasks and routes."""
    imitated, anchors = cluster(EVEN)
    own = Map(name="m", inputs=("in",), schema=ROWS, function=lambda t: t, tasks=TaskBounds(1, 4))
    allocation = NextAllocation((own,), tasks=4)
    segment = Segment("main", (own,), (), ())
    fields = [one.name for one in dataclasses.fields(SparkWork) if one.init]
    given = dict.fromkeys(fields) | {
        "segment": segment,
        "allocation": allocation,
        "anchors": anchors,
        "executors": TWO,
    }
    work = SparkWork(**given)
    allocation.deal("m", (0.4, 0.2, 0.2, 0.2))
    assert work.operators()["m"].route and imitated.held == 1
    allocation.deal("m", ())
    assert work.operators() == {"m": OperatorPlan(4)} and imitated.held == 0
