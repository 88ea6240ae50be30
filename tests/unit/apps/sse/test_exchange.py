"""The whole exchange without Spark: right however it is cut, and wrong answers are found."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.helpers.keyed_operator import Operator
from tests.unit.apps.sse.exchange import Ran, run_exchange
from tidegate.apps.application import Settings
from tidegate.apps.event_progress import EventProgress
from tidegate.apps.sse.application import APPLICATION, OPERATORS, analytics, market_of
from tidegate.apps.sse.boards import partials
from tidegate.apps.sse.conserved import conserved
from tidegate.apps.sse.market import Market
from tidegate.apps.sse.orders import order_map, orders
from tidegate.apps.sse.transactor import LAST, RECORD_BYTES, Transactor
from tidegate.apps.sse.verdict import Reference, not_closed
from tidegate.errors import AskedWrongly, TidegateError
from tidegate.workload.parse import parse_profile

MARKET = Market(parse_profile("constant:150"), seed=7, stocks=20)
ARRIVED = 3600
REFERENCE = Reference.of(MARKET, ARRIVED)
CUTS = (1, 1600, 1603)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return run_exchange(tmp_path_factory.mktemp("exchange"), MARKET, ARRIVED, CUTS)


def judged(ran: Ran, **changes):
    ran = replace(ran, **changes)
    return REFERENCE.verdict(ran.trades, ran.answers, ran.states, ran.progress)


def test_the_answers_are_right(ran: Ran) -> None:
    found = judged(ran)
    assert found.correct, found.said
    assert found.figures["orders"] == ARRIVED
    assert found.figures["transactions"] == ran.trades.num_rows > 1000
    told = set(ran.answers["analytic"].to_pylist())
    assert told == set(OPERATORS[1:])  # there is an answer of every analytic to compare
    assert found.figures["events"] > 50


def test_other_micro_batches_give_the_same_books_and_events(tmp_path: Path, ran: Ran) -> None:
    events = ("alarm", "jump", "spike", "large", "halt")
    other = run_exchange(tmp_path, MARKET, ARRIVED, (1800,), only=events)
    assert other.trades.sort_by("trade").equals(ran.trades.sort_by("trade"))
    by = [("stock", "ascending"), ("order", "ascending")]
    assert other.states["transactor"].sort_by(by).equals(ran.states["transactor"].sort_by(by))
    chosen = ran.answers.filter(pc.is_in(ran.answers["analytic"], pa.array(events)))
    by = [("analytic", "ascending"), ("trade", "ascending")]
    assert other.answers.sort_by(by).equals(chosen.sort_by(by))


def without_a_trade(ran: Ran) -> Ran:
    return replace(ran, trades=ran.trades.slice(1))


def with_a_trade_twice(ran: Ran) -> Ran:
    return replace(ran, trades=pa.concat_tables([ran.trades, ran.trades.slice(5, 1)]))


def with_more_shares_in_a_book(ran: Ran) -> Ran:
    state = ran.states["transactor"]
    shares = state["shares"].to_numpy().copy()
    shares[int(np.argmax(state["order"].to_numpy() >= 0))] += 100
    place = state.schema.get_field_index("shares")
    changed = state.set_column(place, "shares", pa.array(shares))
    return replace(ran, states={**ran.states, "transactor": changed})


def without_an_answer(analytic: str) -> Callable[[Ran], Ran]:
    def change(ran: Ran) -> Ran:
        names = ran.answers["analytic"].to_pylist()
        last = len(names) - 1 - names[::-1].index(analytic)
        rest = [ran.answers.slice(0, last), ran.answers.slice(last + 1)]
        return replace(ran, answers=pa.concat_tables(rest))

    return change


def without_answers(analytic: str) -> Callable[[Ran], Ran]:
    def change(ran: Ran) -> Ran:
        others = pc.not_equal(ran.answers["analytic"], analytic)
        return replace(ran, answers=ran.answers.filter(others))

    return change


def with_another_value(analytic: str) -> Callable[[Ran], Ran]:
    def change(ran: Ran) -> Ran:
        value = ran.answers["value"].to_numpy().copy()
        value[ran.answers["analytic"].to_pylist().index(analytic)] += 1.0
        place = ran.answers.schema.get_field_index("value")
        return replace(ran, answers=ran.answers.set_column(place, "value", pa.array(value)))

    return change


def without_a_state(name: str) -> Callable[[Ran], Ran]:
    def change(ran: Ran) -> Ran:
        return replace(ran, states={**ran.states, name: ran.states[name].slice(1)})

    return change


WRONG = {
    "a trade is missing": (without_a_trade, "transactions are not"),
    "a trade is there twice": (with_a_trade_twice, "transactions are not"),
    "shares were created": (with_more_shares_in_a_book, "books differ"),
    **{f"{name} is off": (with_another_value(name), name) for name in OPERATORS[1:]},
    **{
        f"an answer of {name} is missing": (without_an_answer(name), name) for name in OPERATORS[1:]
    },
    **{
        f"all answers of {name} are missing": (without_answers(name), name)
        for name in OPERATORS[1:]
    },
    **{f"state of {name} is missing": (without_a_state(name), name) for name in OPERATORS[1:7]},
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_answer_is_found(ran: Ran, case: str) -> None:
    change, named = WRONG[case]
    found = judged(change(ran))
    assert not found.correct
    assert named in found.said


def test_shares_and_cash_are_checked_by_themselves(ran: Ran) -> None:
    given = orders(MARKET, np.arange(ARRIVED))
    state, right = ran.states["transactor"], REFERENCE.replayed.trades
    assert conserved(given, ran.trades, state, right) == []
    more = with_more_shares_in_a_book(ran).states["transactor"]
    (fault,) = conserved(given, ran.trades, more, right)
    assert "shares were ordered" in fault
    dearer = ran.trades.set_column(4, "price", pc.add(ran.trades["price"], 500))
    faults = conserved(given, dearer, state, right)
    assert any("beyond its limit" in fault for fault in faults)
    assert any("not its shares times its price" in fault for fault in faults)


def test_a_share_that_goes_to_another_trader_is_found(ran: Ran) -> None:
    """Sums over all traders, stocks and sides stay as they are; only the accounts change."""
    given = orders(MARKET, np.arange(ARRIVED))
    trades = ran.trades.to_pylist()
    sold: Counter[int] = Counter()
    for one in trades:
        sold[one["sell_order"]] += one["shares"]
    taker, giver = next(
        (one, other)
        for one in trades
        if sold[one["sell_order"]] < given.shares[one["sell_order"]]
        for other in trades
        if one["buy_order"] == other["buy_order"]
        and one["seller"] != other["seller"]
        and other["shares"] > 1
    )
    for one, share in ((taker, 1), (giver, -1)):
        one["shares"] += share
        one["cash"] += share * one["price"]
    wrong = pa.Table.from_pylist(trades, schema=ran.trades.schema)
    (fault,) = conserved(given, wrong, ran.states["transactor"], REFERENCE.replayed.trades)
    assert "traders have other accounts than after the replay" in fault


def test_without_any_batch_nothing_is_right(ran: Ran) -> None:
    empty = {name: state.slice(0, 0) for name, state in ran.states.items()}
    none = dict.fromkeys(ran.progress, EventProgress(None, None))
    assert not REFERENCE.verdict(None, None, empty, none).correct
    assert Reference.of(MARKET, 0).verdict(None, None, empty, none).correct


def test_windows_that_are_never_answered_are_found(tmp_path: Path) -> None:
    windowed = ("average", "volume", "volatility")
    whole = run_exchange(tmp_path, MARKET, ARRIVED, (), only=windowed)
    right = REFERENCE.expected(())
    assert not_closed(whole.states, right, whole.progress) == [], "all came in one batch"
    late = {name: replace(one, before_us=11_000_000) for name, one in whole.progress.items()}
    faults = not_closed(whole.states, right, late)
    assert [fault.split(":")[0] for fault in faults] == list(windowed)


def test_an_order_after_a_later_one_is_refused(tmp_path: Path) -> None:
    rows = order_map(MARKET)(pa.table({"seq": np.arange(200)}))
    operator = Operator(tmp_path, Transactor(), "stock", "seq")
    operator.run(rows.slice(100))
    with pytest.raises(TidegateError, match="the transactor got order"):
        operator.run(rows.slice(0, 100))


def test_the_book_is_bounded_and_its_last_orders_are_kept(ran: Ran) -> None:
    state = ran.states["transactor"].to_pylist()
    last = {row["stock"]: row["shares"] for row in state if row["order"] == LAST}
    assert max(last.values()) == ARRIVED - 1
    sides = [(row["stock"], row["side"]) for row in state if row["order"] >= 0]
    assert max(sides.count(side) for side in set(sides)) <= 64


def test_a_record_has_the_papers_size(ran: Ran) -> None:
    one = ran.trades.slice(0, 1).to_pylist()[0]
    assert sum(len(v) if isinstance(v, bytes) else 8 for v in one.values()) == RECORD_BYTES


def test_partial_results_of_no_trades_are_none(ran: Ran) -> None:
    assert partials(ran.trades.slice(0, 0)).rows.num_rows == 0
    made = partials(ran.trades)
    assert len(made.positions(ran.trades.num_rows)) == made.rows.num_rows <= MARKET.stocks


def test_the_operators_are_the_papers() -> None:
    assert len(OPERATORS) == 12
    assert [name for name, _, _ in analytics(MARKET)] == list(OPERATORS[1:])
    assert set(APPLICATION.stretched_s) == set(OPERATORS)


def test_the_number_of_stocks_can_be_asked_for() -> None:
    asked = Settings(rate=MARKET.profile, seconds=1.0, extra={"stocks": "7"})
    assert market_of(asked).stocks == 7
    with pytest.raises(AskedWrongly, match="stocks=many"):
        market_of(replace(asked, extra={"stocks": "many"}))
