"""The rounds of a long test: a line for each, with the time that the others take."""

from collections.abc import Callable

from tidegate.progress import Progress, in_words


class Rounds:
    """Says when a round begins."""

    def __init__(
        self, total: int, say: Callable[[str], None], progress: Progress | None = None
    ) -> None:
        self.total = total
        self._say = say
        self._begun = 0
        self._progress = progress or Progress()
        self._progress.expect(total)

    def begin(self, what: str) -> None:
        """A round begins, and the one before it is over."""
        self._begun += 1
        self._progress.step(what)
        left_s = self._progress.how_far().left_s
        left = "" if left_s is None else f"; about {in_words(left_s)} left"
        self._say(f"round {self._begun} of {self.total}: {what}{left}")
