"""What the settings of a run mean to every application alike."""

import pytest

from tidegate.apps.application import Settings
from tidegate.apps.micro import application as micro
from tidegate.apps.sse import application as sse
from tidegate.workload.profile import constant


class Operators:
    """Takes the place of a stream, and notes the time per tuple of each keyed operator."""

    def __init__(self) -> None:
        self.row_s: dict[str, float | None] = {}

    def keyed(self, name: str, function, **options) -> "Operators":
        self.row_s[name] = function.row_s
        return self

    def map(self, *given, **options) -> "Operators":
        return self

    merge = to = cut = map


def times(app: str, **changes) -> dict[str, float | None]:
    """The times per tuple that an application asks for; its source is not started."""
    settings = Settings(rate=constant(10.0), seconds=1.0, **changes)
    noted = Operators()
    with pytest.MonkeyPatch.context() as patched:
        module = {"micro": micro, "sse": sse}[app]
        patched.setattr(module, "arrivals", lambda *given, **options: None)
        patched.setattr(module, "pipeline", lambda *given, **options: noted)
        module.build(None, settings, module.Path("nowhere"))
    return noted.row_s


@pytest.mark.parametrize(("app", "operator"), [("micro", micro.CALCULATOR), ("sse", "vwap")])
def test_a_pace_divides_the_times_of_every_application(app: str, operator: str) -> None:
    assert times(app)[operator] is None
    usual = times(app, stretch=True)[operator]
    faster = times(app, stretch=True, pace=2.0)[operator]
    assert usual is not None and faster is not None
    assert 0.0 < faster == pytest.approx(usual / 2.0)
