"""The names under which operators keep their state in the checkpoint.

An operator keeps its state under its own name: in its directory, in manifests and in plans. When it
is renamed, its state stays where it is, and the checkpoint's description notes the name that it is
kept under. When its state is dropped, that name is retired, so that no old manifest can bring the
state back. Nothing but the description changes, so a crash leaves the old names or the new ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

Value = TypeVar("Value")

KEPT_AS = "kept_as"
"""The field of an operator's description with the name of its state; absent: its own name."""


@dataclass(frozen=True, slots=True)
class KeptNames:
    """Translates between operators and the names of their state."""

    by_operator: Mapping[str, str] = field(default_factory=dict)
    """Only operators whose state has another name."""

    @classmethod
    def of(cls, description: Mapping[str, Any] | None) -> "KeptNames":
        """The names in a checkpoint's description."""
        operators = {} if description is None else description.get("operators", {})
        return cls({name: one[KEPT_AS] for name, one in operators.items() if KEPT_AS in one})

    def kept(self, operator: str) -> str:
        """The name under which the state of an operator is kept."""
        return self.by_operator.get(operator, operator)

    def to_kept(self, by_operator: Mapping[str, Value]) -> dict[str, Value]:
        """A mapping by operator as it is written to the checkpoint."""
        return {self.kept(operator): value for operator, value in by_operator.items()}

    def from_kept(self, by_name: Mapping[str, Value]) -> dict[str, Value]:
        """A mapping read from the checkpoint, by operator, without state that was dropped."""
        operator_of = {name: operator for operator, name in self.by_operator.items()}
        return {
            operator_of.get(name, name): value
            for name, value in by_name.items()
            if name in operator_of or name not in self.by_operator
        }


def fresh_name(operator: str, taken: set[str]) -> str:
    """A name for new state: the operator's own, or with a number that no operator can have."""
    name, number = operator, 2
    while name in taken:
        name, number = f"{operator}.{number}", number + 1
    return name
