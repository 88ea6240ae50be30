"""Traffic equations: how often a tuple visits each operator, for any topology (DRS fig. 2).

An external tuple causes v_i visits of operator i. With r_ij tuples emitted along the edge from i to
j per tuple processed at i, v_j = r_0j + sum_i v_i r_ij, a linear system. It has a finite solution
exactly when no loop multiplies its tuples: the spectral radius of r must be below one within every
strongly connected set of operators.
"""

import warnings

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import csgraph
from scipy.sparse import linalg as sparse_linalg

from tidegate.errors import AskedWrongly, nearest
from tidegate.models.queueing.network import SOURCE, Network

Vector = npt.NDArray[np.float64]

_DENSE_UP_TO = 200
"""Networks of up to this many operators are solved faster as a dense system."""
_MOST_VISITS = 1e12
"""A loop counts as endless above this many visits per tuple: the solution has lost its digits."""


def visit_ratios(network: Network) -> Vector:
    """Visits of each operator per external tuple (lambda_i / lambda_0), in the network's order.

    Raises AskedWrongly, naming the operators, when a loop has a gain of one or more.
    """
    entries, ratios = _matrix(network)
    _refuse_endless_loops(network, ratios)
    return _solve(ratios.T, entries)


def arrival_rates(network: Network) -> Vector:
    """Tuples per second that arrive at each operator (lambda_i), external and internal."""
    return network.rate * visit_ratios(network)


def _matrix(network: Network) -> tuple[Vector, sparse.csr_matrix]:
    """The ratios of the edges from the source, and of those between operators."""
    position = {name: index for index, name in enumerate(network.names)}
    count = len(position)
    entries = np.zeros(count)
    origins, targets, ratios = [], [], []
    for edge in network.edges:
        ends = {edge.origin, edge.target} - ({SOURCE} if edge.target != SOURCE else set())
        for name in sorted(ends - position.keys()):
            raise AskedWrongly(
                f"an edge names an unknown operator '{name}'{nearest(name, position)}"
            )
        if edge.origin == SOURCE:
            entries[position[edge.target]] += edge.ratio
        else:
            origins.append(position[edge.origin])
            targets.append(position[edge.target])
            ratios.append(edge.ratio)
    return entries, sparse.csr_matrix((ratios, (origins, targets)), shape=(count, count))


def _solve(matrix: sparse.spmatrix, right: Vector) -> Vector:
    """Solve x = right + matrix x; the result is not finite when there is no solution."""
    count = len(right)
    if count <= _DENSE_UP_TO:
        try:
            return np.linalg.solve(np.eye(count) - matrix.toarray(), right)
        except np.linalg.LinAlgError:
            return np.full(count, np.inf)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sparse_linalg.MatrixRankWarning)
        system = sparse.identity(count, format="csc") - matrix.tocsc()
        return np.asarray(sparse_linalg.spsolve(system, right), dtype=np.float64)


def _refuse_endless_loops(network: Network, ratios: sparse.csr_matrix) -> None:
    """Raise an error if a strongly connected set of operators has a gain of one or more.

    If x = 1 + r x has a solution x >= 1, then r x < x and the spectral radius is below one
    (Collatz-Wielandt); without such an x it is not. This needs no eigenvalues.
    """
    positive = ratios.copy()
    positive.eliminate_zeros()
    sets, member = csgraph.connected_components(positive, directed=True, connection="strong")
    self_loop = positive.diagonal() > 0
    sizes = np.bincount(member, minlength=sets)
    for which in np.unique(member[(sizes[member] > 1) | self_loop]):
        members = np.flatnonzero(member == which)
        within = positive[members][:, members]
        x = _solve(within, np.ones(len(members)))
        if not np.all((x >= 1.0 - 1e-9) & (x < _MOST_VISITS)):
            names = ", ".join(f"'{network.names[index]}'" for index in members)
            raise AskedWrongly(
                f"the loop through {names} has a gain of 1 or more, so its tuples multiply without"
                " end; lower the ratio of one of its edges"
            )
