"""Traffic equations: splits, joins, loops, and loops that never end."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import AskedWrongly
from tidegate.models.queueing.network import Edge, Network, Operator
from tidegate.models.queueing.traffic import arrival_rates, visit_ratios


def network(names: str, *edges: tuple[str, str, float], rate: float = 10.0) -> Network:
    return Network(
        rate=rate,
        operators=tuple(Operator(name=name, service_rate=1.0) for name in names),
        edges=tuple(Edge(origin=o, target=t, ratio=r) for o, t, r in edges),
    )


def test_split_join_and_loop_of_figure_2() -> None:
    figure_2 = network(
        "ABCDE",
        ("source", "A", 1.0),
        ("A", "B", 0.5),
        ("A", "C", 0.5),
        ("B", "D", 2.0),
        ("C", "E", 1.0),
        ("D", "E", 1.0),
        ("E", "A", 0.2),
    )
    # v_A = 1 + 0.2 v_E and v_E = 0.5 v_A + v_A, so v_A = 1 / 0.7.
    a = 1 / 0.7
    assert visit_ratios(figure_2) == pytest.approx([a, a / 2, a / 2, a, 1.5 * a])
    assert arrival_rates(figure_2) == pytest.approx(10.0 * visit_ratios(figure_2))


@pytest.mark.parametrize("gain", [1.0, 1.0 + 1e-12, 1.5, 40.0])
def test_endless_loop_is_refused_by_name(gain: float) -> None:
    endless = network(
        "ABCD",
        ("source", "A", 1.0),
        ("A", "B", 2.0),
        ("B", "C", gain / 2.0),
        ("C", "B", 2.0),
        ("C", "D", 1.0),
    )
    with pytest.raises(AskedWrongly, match=r"loop through 'B', 'C' has a gain of 1 or more"):
        visit_ratios(endless)


def test_self_loop_below_one_is_a_geometric_series() -> None:
    assert visit_ratios(network("A", ("source", "A", 1), ("A", "A", 0.75))) == pytest.approx([4.0])
    with pytest.raises(AskedWrongly, match="'A'"):
        visit_ratios(network("A", ("source", "A", 1), ("A", "A", 1.0)))


def test_unknown_operator_is_refused_with_the_nearest_name() -> None:
    for edge in (("A", "Bravo", 1.0), ("Bravo", "A", 1.0), ("A", "source", 1.0)):
        with pytest.raises(AskedWrongly, match="unknown operator"):
            visit_ratios(network("A", ("source", "A", 1), edge))


def test_a_long_chain_is_solved_sparsely() -> None:
    count = 2_000
    names = [str(index) for index in range(count)]
    chain = Network(
        rate=1.0,
        operators=tuple(Operator(name=name, service_rate=1.0) for name in names),
        edges=(
            Edge(origin="source", target="0"),
            *(Edge(origin=a, target=b) for a, b in itertools.pairwise(names)),
            Edge(origin=names[-1], target="0", ratio=0.5),
        ),
    )
    assert visit_ratios(chain) == pytest.approx(np.full(count, 2.0))


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.floats(0, 0.9), min_size=9, max_size=9),
    st.lists(st.floats(0, 3), min_size=3, max_size=3),
)
def test_flow_is_conserved_or_the_radius_is_at_least_one(
    ratios: list[float], entries: list[float]
) -> None:
    matrix = np.array(ratios).reshape(3, 3)
    names = "ABC"
    some = network(
        names,
        *(("source", names[i], entries[i]) for i in range(3)),
        *((names[i], names[j], matrix[i, j]) for i in range(3) for j in range(3)),
    )
    radius = max(abs(np.linalg.eigvals(matrix)))
    try:
        visits = visit_ratios(some)
    except AskedWrongly:
        assert radius > 1.0 - 1e-9
    else:
        assert radius < 1.0 + 1e-9
        assert visits == pytest.approx(np.array(entries) + visits @ matrix, rel=1e-6, abs=1e-9)
        assert (visits >= -1e-12).all()
