"""A policy with its options is one text: read, refused and written down again."""

import json

import pytest

from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.drs_options import DrsOptions, drs_options
from tidegate.control.names import policy_name
from tidegate.control.target import Target
from tidegate.errors import AskedWrongly

WRITTEN = "drs(model=gigk, t_min=500ms, w=3, resplit=better)"


def test_options_are_read_and_written_in_one_way() -> None:
    found = drs_options(WRITTEN)
    assert found == DrsOptions(model="gigk", t_min_s=0.5, w=3, resplit="better")
    once = policy_name(" drs( resplit=better,model = gigk , w=3,t_min=0.5 seconds ) ")
    assert drs_options(once) == found
    assert policy_name(once) == once
    assert policy_name("drs()") == policy_name("drs(w=6)") == "drs"
    assert drs_options("drs-fixed(alpha=0.8)").alpha == 0.8
    assert drs_options("latency") == DrsOptions()


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("drs(model=mm1)", "model is mmk or gigk, not 'mm1'"),
        ("drs(modle=gigk)", "no option 'modle'; did you mean 'model'"),
        ("drs(gigk)", "'gigk' is not an option; write name=value"),
        ("drs(w=0)", "w is a whole number of ticks from 1, not '0'"),
        ("drs(w=2.5)", "w is a whole number of ticks from 1, not '2.5'"),
        ("drs(alpha=1)", "alpha is from 0 to below 1, not '1'"),
        ("drs(alpha=0.5, w=3)", "two ways to smooth; give one"),
        ("drs(w=3, w=4)", "w is given twice"),
        ("drs(t_min=soon)", "'soon' is not a duration"),
        ("drs(resplit=never)", "resplit is differs or better, not 'never'"),
        ("drs-fixed(t_min=1s)", "drs-fixed has no option 't_min'"),
        ("latency(w=3)", "only drs, drs-fixed, .* take options; write 'latency'"),
        ("drz(w=3)", "there is no policy 'drz'; did you mean 'drs'"),
        ("drs(w=3", "there is no policy 'drs.w=3'"),
    ],
)
def test_a_wrong_option_is_told_in_a_sentence(written: str, message: str) -> None:
    with pytest.raises(AskedWrongly, match=message):
        policy_name(written)


def test_t_min_is_below_the_target() -> None:
    target, bounds = Target(0.4), Bounds(1, 8)
    with pytest.raises(AskedWrongly, match="t_min=500 ms, but the target is 400 ms; give a t_min"):
        Assembly(target=target, bounds=bounds, policy=WRITTEN)
    assert DrsOptions().t_min_below(1.0) == 0.45


def test_a_record_holds_the_options_and_one_without_them_is_still_read() -> None:
    made = Assembly(target=Target(2.0), bounds=Bounds(1, 8), policy=policy_name(WRITTEN))
    document = json.loads(json.dumps(made.document()))
    assert drs_options(document["policy"]) == drs_options(WRITTEN)
    assert Assembly.of(document) == made
    assert Assembly.of({**document, "policy": "drs"}).policy == "drs"
    assert new_controller(made) is not None
