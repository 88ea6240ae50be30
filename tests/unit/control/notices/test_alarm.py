"""An alarm is raised and cleared in turn, and never sooner than it should be."""

from hypothesis import given
from hypothesis import strategies as st

from tidegate.control.notices.alarm import Alarm

LOOKS = st.lists(st.tuples(st.floats(0.1, 20.0), st.booleans()), max_size=60)


@given(LOOKS, st.floats(0.0, 30.0), st.floats(0.0, 30.0))
def test_it_is_raised_and_cleared_in_turn_and_in_time(
    looks: list[tuple[float, bool]], after_s: float, clear_s: float
) -> None:
    alarm = Alarm(after_s=after_s, clear_s=clear_s)
    at_s, streak_s, held = 0.0, 0.0, None
    for step_s, holds in looks:
        at_s += step_s
        streak_s = streak_s + step_s if holds is held else 0.0
        held = holds
        was = alarm.raised
        changed = alarm.see(holds, at_s)
        assert changed == (alarm.raised is not was)
        if changed:
            assert alarm.raised is holds
            assert streak_s >= (after_s if holds else clear_s) - 1e-6
        else:
            patience_s = after_s if holds else clear_s
            assert alarm.raised is holds or streak_s < patience_s + 1e-6


def test_a_break_begins_the_time_anew() -> None:
    alarm = Alarm(after_s=10.0, clear_s=5.0)
    assert not any(alarm.see(at_s != 9, float(at_s)) for at_s in range(20))
    assert alarm.see(True, 20.0)
    assert alarm.since_s == 10.0
    assert not any(alarm.see(at_s == 24, float(at_s)) for at_s in range(21, 30))
    assert alarm.see(False, 30.0)


def test_a_condition_may_have_begun_before_it_was_seen() -> None:
    alarm = Alarm(after_s=10.0, clear_s=0.0)
    assert alarm.see(True, 100.0, 90.0)
    assert alarm.since_s == 90.0
    assert alarm.clear() and not alarm.clear()
