"""Identities of functions: what gives state another meaning, and what is another spelling."""

import functools

import pyarrow as pa
import pytest

from tidegate.pipelines.functions import (
    aggregate,
    count,
    latest,
    max,
    mean,
    min,
    sessions,
    sum,
    top_n,
    window,
)
from tidegate.pipelines.identity import identity_of, own_identity, same_identity, shown

TIME = pa.timestamp("us", "UTC")
ROWS = pa.schema(
    [("k", pa.string()), ("v", pa.int64()), ("w", pa.int64()), ("timestamp", TIME), ("at", TIME)]
)


def bound(function):
    return function.bind(ROWS, ("k",)).identity


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (sum("v", as_="x"), max("v", as_="x")),
        (min("v", as_="x"), max("v", as_="x")),
        (sum("v", as_="x"), sum("w", as_="x")),
        (count(as_="x"), count("v", as_="x")),
        (count(as_="x"), sum("v", as_="x")),
        (mean("v", as_="x"), mean("w", as_="x")),
        (latest("v", by="timestamp"), latest("v", by="at")),
        (latest("v", as_="x"), latest("w", as_="x")),
        (aggregate(a=min("v"), b=max("v")), aggregate(a=max("v"), b=min("v"))),
        (top_n(3, by="v", of="w"), top_n(4, by="v", of="w")),
        (top_n(3, by="v", of="w"), top_n(3, by="w", of="v")),
        (window(count(), every="10 seconds"), window(count(), every="25 seconds")),
        (
            window(count(), every="10 seconds", size="20 seconds"),
            window(count(), every="10 seconds", size="30 seconds"),
        ),
        (window(count(), every="10s"), window(count(), every="10s", event_time="at")),
        (window(sum("v", as_="x"), every="10s"), window(max("v", as_="x"), every="10s")),
        (sessions(gap="10s"), sessions(gap="20s")),
        (sessions(sum("v", as_="x"), gap="10s"), sessions(max("v", as_="x"), gap="10s")),
    ],
)
def test_another_meaning_is_another_identity(one, other):
    assert not same_identity(bound(one), bound(other))
    assert shown(bound(one)) != shown(bound(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (window(count(), every="10 seconds"), window(count(), every="10s", size="10000 ms")),
        (window(count(), every="10s"), window(count(), every="10s", delay="1 minute")),
        (window(count(), every="10s"), window(count(), every="10s", emit="update")),
        (count(as_="n"), aggregate(n=count())),
    ],
)
def test_another_spelling_is_the_same_identity(one, other):
    assert same_identity(bound(one), bound(other))


def test_an_identity_reads_like_the_call():
    assert shown(bound(window(sum("v"), every="10s", event_time="at"))) == (
        "window(sum(column='v'), every=10 s, size=10 s, event_time='at')"
    )
    assert shown(bound(aggregate(n=count(), high=max("v")))) == (
        "aggregate(n=count(), high=max(column='v'))"
    )


def mine(rows, state):
    return None


def yours(rows, state):
    return None


class Mine:
    def __call__(self, rows, state):
        return None


def test_an_own_function_is_known_by_its_name():
    def inner(rows, state):
        return None

    assert own_identity(mine) == {"function": "own", "module": __name__, "name": "mine"}
    assert own_identity(functools.partial(mine, state=1)) == own_identity(mine)
    assert own_identity(Mine())["name"] == "Mine"
    assert own_identity(inner)["name"] == "inner"
    assert not same_identity(own_identity(mine), own_identity(yours))
    assert not same_identity(own_identity(mine), identity_of(count()))


def test_a_lambda_and_a_script_have_no_name_to_compare():
    script = {**own_identity(mine), "module": "__main__"}
    moved = {**own_identity(mine), "module": "elsewhere"}
    assert same_identity(own_identity(lambda rows, state: None), own_identity(mine))
    assert same_identity(script, own_identity(mine))
    assert not same_identity(moved, own_identity(mine))
