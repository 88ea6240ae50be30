"""Options that change at run time: merged over those of the start, and refused by name."""

import pytest

from tidegate.errors import AskedWrongly
from tidegate.spark.loop.settings import LoopSettings, changeable, merged
from tidegate.spark.options import CHANGEABLE, AttachOptions, StartOptions, declared, filled

GIVEN = filled(StartOptions, {"target": "2 s", "cores": (1, 4), "dry_run": True})


def test_what_is_not_given_stays() -> None:
    now = merged(StartOptions, GIVEN, {"target": "5 s", "dry_run": False})
    assert now == {**GIVEN, "target": "5 s", "dry_run": False}


def test_cores_and_executors_replace_each_other() -> None:
    now = merged(StartOptions, GIVEN, {"executors": (1, 3)})
    assert (now["cores"], now["executors"]) == (None, (1, 3))
    back = merged(StartOptions, now, {"cores": 2})
    assert (back["cores"], back["executors"]) == (2, None)
    both = merged(StartOptions, GIVEN, {"cores": None, "executors": (1, 3)})
    assert (both["cores"], both["executors"]) == (None, (1, 3))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tick": "5 s"}, "tick cannot change while it runs.*target, percentile, cores"),
        ({"approve": None}, "approve cannot change while it runs"),
        ({"shed": True}, "shed cannot change while it runs"),
        ({"targt": "5 s"}, "there is no option 'targt'.*target"),
        ({"target": None}, "control needs a target"),
        ({"dry_run": "no"}, "dry_run='no': expected True or False"),
    ],
)
def test_what_cannot_change_is_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(AskedWrongly, match=said):
        merged(StartOptions, GIVEN, options)


def test_an_attachment_has_no_policy_to_change() -> None:
    assert set(CHANGEABLE) <= set(declared(StartOptions))
    assert set(CHANGEABLE) - set(changeable(AttachOptions)) == {"policy", "capacity"}
    with pytest.raises(AskedWrongly, match="there is no option 'policy'"):
        merged(AttachOptions, GIVEN, {"policy": "drs"})


def test_a_change_is_checked_as_the_start_was() -> None:
    def assembled(given: object) -> object:
        if given["target"] == "1 ns":  # type: ignore[index]
            raise AskedWrongly("out of reach")
        return given["target"]  # type: ignore[index]

    settings = LoopSettings.of(StartOptions, GIVEN, assembled)  # type: ignore[arg-type]
    assert settings.changed({"target": "3 s"}).assembly == "3 s"
    with pytest.raises(AskedWrongly, match="out of reach"):
        settings.changed({"target": "1 ns"})
    assert settings.assembly == "2 s"
