"""The fewest and the most cores that the user allows a pipeline."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bounds:
    """The fewest and the most cores (machines, in a backtest)."""

    least: int = 1
    most: int = 128

    def clamp(self, cores: int) -> int:
        """The nearest number within the bounds."""
        return min(max(cores, self.least), self.most)

    def within(self, share: int | None) -> "Bounds":
        """The bounds of a pipeline whose share is `share` cores; the share wins over the minimum.

        None means that the pipeline is alone in its application, so its own bounds hold.
        """
        if share is None:
            return self
        most = max(min(self.most, share), 1)
        return Bounds(min(self.least, most), most)
