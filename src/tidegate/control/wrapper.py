"""The base of policies that wrap another one: they change its decisions and keep its name."""

from collections.abc import Mapping
from typing import Any

from tidegate.control.policy import Policy
from tidegate.control.remembering import Remembering


class Wrapper:
    """A policy around an inner policy."""

    def __init__(self, inner: Policy) -> None:
        self._inner = inner

    @property
    def inner(self) -> Policy:
        """The policy inside."""
        return self._inner

    @property
    def name(self) -> str:
        """The inner policy's name: a user selects the policy, not what wraps it."""
        return self._inner.name

    @property
    def beliefs(self) -> dict[str, float]:
        """The inner policy's beliefs."""
        return dict(getattr(self._inner, "beliefs", {}))

    def learned(self) -> dict[str, Any]:
        """What the inner policy has learned."""
        return self._inner.learned() if isinstance(self._inner, Remembering) else {}

    def recall(self, learned: Mapping[str, Any], age_s: float) -> None:
        """Let the inner policy begin with what it learned in an earlier run."""
        if isinstance(self._inner, Remembering):
            self._inner.recall(learned, age_s)
