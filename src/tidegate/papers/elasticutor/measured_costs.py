"""What simulations of 256 cores take from measurements on Spark.

The network stays the paper's 1 Gbit/s: on one machine, state is read faster than a cluster could
send it.
"""

from tidegate.sim.placement.nodes import Nodes

SYNCHRONISED_S = 0.03
"""From the end of a batch, when the control loop decides to move a shard, to the begin of the next
one, which has the new route (`tidegate paper elasticutor fig8`). In the simulations the shards that
a decision moves stand still for so long, all at the same time. The paper's executors need 2 ms to
agree on a move, for one shard after the other.

The resource-centric way stands still for as long for each of 32 executors upstream, once for all
shards. That is the second or so that a restart takes on Spark."""


def nodes_of(count: int, cores_each: int = 8) -> Nodes:
    """Nodes whose moves take as long as those that were measured."""
    return Nodes(count=count, cores_each=cores_each, handshake_s=SYNCHRONISED_S, together=True)
