"""All applications, by name. Each is imported when it is asked for."""

from importlib import import_module

from tidegate.apps.application import Application
from tidegate.errors import AskedWrongly, nearest

PLACES = {
    "vld": "tidegate.apps.vld.application",
    "fpd": "tidegate.apps.fpd.application",
    "micro": "tidegate.apps.micro.application",
    "sse": "tidegate.apps.sse.application",
}
"""The module of each application, which has it as `APPLICATION`."""


def application(name: str) -> Application:
    """The application of this name."""
    if name not in PLACES:
        raise AskedWrongly(f"there is no application '{name}'{nearest(name, PLACES)}")
    found = import_module(PLACES[name]).APPLICATION
    assert isinstance(found, Application)
    return found


def applications() -> list[Application]:
    """All applications, in the order of the papers."""
    return [application(name) for name in PLACES]
