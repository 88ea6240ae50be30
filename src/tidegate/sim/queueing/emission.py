"""How an edge's ratio, a mean, becomes a whole number of tuples each time.

- `routed` (default): one uniform number decides for all edges of an operator, laid end to end on a
  circle of length one, so an edge gets its ratio rounded down or up. Ratios that sum to at most one
  send a tuple to at most one target, which is a Jackson network's routing (DRS eq. 4); whole ratios
  are met exactly. The mean is right for every edge.
- `independent`: each edge rounds on its own, so a tuple may go both ways of a split by 0.4 and 0.6.
- `even`: no chance at all; the n-th tuple brings the total sent along the edge to floor(n ratio).
- `geometric`: above one, a geometric count of at least one, for bulks that vary as much as the SIFT
  features of a frame do; up to one as `independent`.
"""

from typing import Literal, get_args

from tidegate.errors import AskedWrongly, nearest

Emission = Literal["routed", "independent", "even", "geometric"]
EMISSIONS: tuple[Emission, ...] = get_args(Emission)


def emission_code(name: str) -> int:
    """The number by which the engine knows this way of rounding (ROUTED, INDEPENDENT, ...)."""
    for code, known in enumerate(EMISSIONS):
        if name == known:
            return code
    raise AskedWrongly(f"there is no emission '{name}'{nearest(name, EMISSIONS)}")
