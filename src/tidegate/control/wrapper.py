"""What policies that stand around another one have in common: they speak under its name."""

from tidegate.control.policy import Policy


class Around:
    """A policy that changes what an inner one decides."""

    def __init__(self, inner: Policy) -> None:
        self._inner = inner

    @property
    def name(self) -> str:
        """The inner policy's: a remedy around it is not another policy."""
        return self._inner.name

    @property
    def beliefs(self) -> dict[str, float]:
        """The inner policy's."""
        return dict(getattr(self._inner, "beliefs", {}))
