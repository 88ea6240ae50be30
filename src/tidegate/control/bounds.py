"""The fewest and the most cores that the user allows a pipeline."""

from dataclasses import dataclass

from tidegate.errors import AskedWrongly


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


def parse_span(name: str, text: str) -> tuple[int, int]:
    """The fewest and the most, as a person writes them: `1:20`, or one number for both."""
    parts = text.split(":")
    if not all(part.isdecimal() for part in parts) or len(parts) > 2:
        raise AskedWrongly(f"{name} {text}: write FEWEST:MOST, such as 1:20")
    least, most = int(parts[0]), int(parts[-1])
    if not 1 <= least <= most:
        raise AskedWrongly(f"{name} {text}: give a minimum from 1 up to the maximum")
    return least, most
