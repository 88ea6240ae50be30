"""What a record says when more cores do not help: since when, how often it was tried, and why.

`control/effect/` finds it, whichever policy runs.
"""

from dataclasses import dataclass

from tidegate.units import format_duration


@dataclass(frozen=True, slots=True, kw_only=True)
class NoEffect:
    """Scale-outs in a row that made batches no faster, so that no core is added for a while."""

    since_s: float
    """When that was found, in seconds since the epoch."""
    segment: str
    """The segment whose batches got no faster."""
    times: int
    """How many scale-outs in a row were in use and had no effect."""
    from_cores: int
    """Cores of the pipeline before the first of them."""
    to_cores: int
    """Cores after the last of them, above which none is added."""
    duration_ratio: float
    """How long batches last now, over how long the same rows would have lasted before."""
    expected_ratio: float
    """The same as the model had expected it."""
    cause: str
    """The likely cause in a word or two: `hot key`, `skew`, `partitions`, `source`, `sink`, ..."""
    why: str
    """The likely cause in a sentence without its end, with what helps."""
    again_s: float
    """How long after `since_s` one more scale-out is tried, if nothing changes before."""

    @property
    def words(self) -> str:
        """All of it for a person. It has no figure that changes while it holds."""
        return (
            f"no core is added for now: {self.times} scale-outs in a row, from {self.from_cores} to"
            f" {self.to_cores} cores, made batches no faster. {self.why}. More are tried when the"
            f" load or its balance changes, or after {format_duration(self.again_s)}"
        )
