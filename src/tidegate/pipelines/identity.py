"""The identity of a keyed function: what gives its state a meaning, as plain JSON values.

A checkpoint keeps it beside the state. The state of a sum continued by a maximum, or windows of ten
seconds continued by windows of 25, would give wrong numbers and no error. So a start compares the
identities, and refuses a change.
"""

import functools
from collections.abc import Mapping
from typing import Any

Identity = Mapping[str, Any]

OWN = "own"
"""The kind of a function that is not one of Tidegate's."""


def identity_of(function: Any) -> Identity:
    """The identity that a function states with a method `identity`, else that of a user's own."""
    stated = getattr(function, "identity", None)
    return stated() if callable(stated) else own_identity(function)


def own_identity(function: Any) -> Identity:
    """A user's own function by its module and name; its code may be improved at any time."""
    while isinstance(function, functools.partial):
        function = function.func
    named = function if hasattr(function, "__qualname__") else type(function)
    name = str(named.__qualname__).rpartition("<locals>.")[2]
    return {"function": OWN, "module": str(named.__module__), "name": name}


def same_identity(old: Identity, new: Identity) -> bool:
    """Whether the state of the old function has the same meaning for the new one.

    A lambda has no name to compare, and a script's own module is called `__main__` only while it is
    run as a script.
    """
    if old.get("function") != OWN or new.get("function") != OWN:
        return old == new
    if "<lambda>" in (old["name"], new["name"]):
        return True
    moved = old["module"] != new["module"] and "__main__" not in (old["module"], new["module"])
    return old["name"] == new["name"] and not moved


def extends(old: Identity, new: Identity) -> bool:
    """Whether an aggregate only got or lost measures: those that stay mean what they meant."""
    if "measures" in old and "measures" in new:
        shared = set(old["measures"]) & set(new["measures"])
        return bool(shared) and all(old["measures"][n] == new["measures"][n] for n in shared)
    if "of" not in old or "of" not in new:
        return False
    rest = {"of": None}
    return {**old, **rest} == {**new, **rest} and (
        old["of"] == new["of"] or extends(old["of"], new["of"])
    )


def shown(identity: Identity) -> str:
    """An identity as a person would write it: `window(sum(column='price'), every=10 s)`."""
    kind = str(identity.get("function"))
    if kind == OWN:
        return f"{identity['module']}.{identity['name']}"
    parts = []
    for name, value in identity.items():
        if name == "function" or value is None or value is False:
            continue
        if name == "of":
            parts.append(shown(value))
        elif isinstance(value, Mapping):
            parts += [f"{result}={shown(one)}" for result, one in value.items()]
        elif name.endswith("_us"):
            parts.append(f"{name.removesuffix('_us')}={value / 1e6:g} s")
        else:
            parts.append(f"{name}={value!r}")
    return f"{kind}({', '.join(parts)})"
