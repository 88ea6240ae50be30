"""What can be varied in the micro-benchmark; the defaults are Elasticutor's (5.1)."""

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.apps.option_values import options_of
from tidegate.errors import AskedWrongly
from tidegate.pipelines.graph import MAX_SHARDS
from tidegate.workload.keys import Keys

WORD = 8
"""Payloads are made and summed in words of so many bytes."""
MOST_STATE_BYTES = 2**31 - 2**20
"""All payloads of a batch must fit into one Arrow column, whose offsets have 32 bits."""
LEAST_OMEGA = 0.001
"""Fewer shuffles than one in sixteen hours are none."""
MEANINGS = {
    "keys": "how many keys there are; default 10000",
    "skew": "the exponent of their zipf distribution, 0 for uniform; default 0.5",
    "omega": "permutations of their frequencies a minute; default 2",
    "payload": "bytes of a tuple besides its key, a multiple of 8; default 128",
    "row_ms": "milliseconds per tuple, stretched; default 1",
    "state_kb": "state of a shard in KB; default 32",
    "shards": "shards of the calculator; default 256",
    "fill": "yes: the first rows bring every key once and cost no time; default no",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroOptions:
    """The load and the state of one run."""

    keys: int = 10_000
    skew: float = 0.5
    """The exponent of the keys' zipf distribution."""
    omega: float = 2.0
    """How often a minute the keys' frequencies are permuted."""
    payload: int = 128
    """Bytes of a tuple besides its key."""
    row_ms: float = 1.0
    """The time that the calculator takes for a tuple, when it is stretched."""
    state_kb: float = 32.0
    """The state of a shard, spread evenly over all keys."""
    shards: int = 256
    fill: bool = False
    """Whether the first rows bring every key once and cost no time, so that all state is there."""

    def __post_init__(self) -> None:
        if self.omega != 0.0 and not LEAST_OMEGA <= self.omega <= 6000.0:
            raise AskedWrongly(
                f"omega={self.omega:g}: give 0, or {LEAST_OMEGA:g} to 6000 shuffles a minute"
            )
        _ = self.distribution
        if not (self.payload >= WORD and self.payload % WORD == 0 and self.payload <= 2**20):
            raise AskedWrongly(
                f"payload={self.payload}: give a multiple of {WORD} bytes, up to a megabyte"
            )
        if not 0.0 <= self.row_ms <= 60_000.0:
            raise AskedWrongly(f"row_ms={self.row_ms:g}: give 0 to 60000 milliseconds")
        if not 1 <= self.shards <= MAX_SHARDS:
            raise AskedWrongly(f"shards={self.shards}: give 1 to {MAX_SHARDS}")
        if not 0.0 <= self.state_kb * 1024 * self.shards <= MOST_STATE_BYTES:
            raise AskedWrongly(
                f"state_kb={self.state_kb:g} in {self.shards} shards: the state of all shards may"
                " be 2 GB at most; give fewer shards or less state"
            )

    @property
    def distribution(self) -> Keys:
        """The keys of the tuples, in the form that the source takes."""
        every_ms = round(60_000 / self.omega) if self.omega > 0 else None
        return Keys(self.keys, self.skew, every_ms=every_ms)

    @property
    def row_s(self) -> float:
        """The time for a tuple in seconds."""
        return self.row_ms / 1000.0

    @property
    def key_bytes(self) -> int:
        """Bytes of payload in the state of each key, so that a shard has `state_kb` on average."""
        return round(self.state_kb * 1024 * self.shards / self.keys / WORD) * WORD


def micro_options(extra: Mapping[str, str]) -> MicroOptions:
    """The options as an application is given them: names and texts."""
    return options_of(MicroOptions, "micro", extra)
