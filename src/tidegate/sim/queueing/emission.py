"""How many tuples an operator emits along an edge for each tuple, given the mean, the edge's ratio.

- `routed` (default): the edges of an operator lie end to end on a circle of length one, and one
  uniform number decides for all of them, so each edge gets its ratio rounded down or up. If ratios
  sum to at most one, a tuple goes to at most one target, as in a Jackson network (DRS eq. 4). Whole
  ratios are met exactly, and the mean is right for every edge.
- `independent`: each edge rounds on its own, so a tuple may go both ways of a 0.4 to 0.6 split.
- `even`: without randomness; after n tuples the total sent along the edge is floor(n ratio).
- `geometric`: for ratios above one, a geometric count of at least one, for bulks that vary as much
  as the SIFT features of a frame; otherwise like `independent`.
"""

from typing import Literal, get_args

from tidegate.errors import AskedWrongly, nearest

Emission = Literal["routed", "independent", "even", "geometric"]
EMISSIONS: tuple[Emission, ...] = get_args(Emission)


def emission_code(name: str) -> int:
    """The engine's number for this kind of emission (ROUTED, INDEPENDENT, ...)."""
    for code, known in enumerate(EMISSIONS):
        if name == known:
            return code
    raise AskedWrongly(f"there is no emission '{name}'{nearest(name, EMISSIONS)}")
