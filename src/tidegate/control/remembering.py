"""The interface of what learns and can be kept across a restart."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Remembering(Protocol):
    """Something that learns, and can continue in another process from what it has learned."""

    def learned(self) -> dict[str, Any]:
        """What it has learned, as plain JSON values of bounded size."""
        ...

    def recall(self, learned: Mapping[str, Any], age_s: float) -> None:
        """Begin with what an earlier run learned, which ended `age_s` seconds ago.

        Parts that are missing, or that belong to a pipeline that has since changed, are left out:
        they are learned again. It is called before the first tick. An error means that nothing of
        it can be used; the controller then begins anew.
        """
        ...
