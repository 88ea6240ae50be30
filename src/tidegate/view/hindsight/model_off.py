"""Whether the model's prediction was far off: predicted against measured latency after a change.

What is predicted is the latency at the load that came, not at the one that was forecast. So an
error of the forecast does not count as one of the model.
"""

from collections.abc import Mapping

import numpy as np

from tidegate.view.hindsight.core_change import ChangedCores
from tidegate.view.hindsight.judged_decision import Fault
from tidegate.view.hindsight.needs import Question

OFF = 1.5
"""Measured and predicted latency that differ by more than this factor."""
_LEAST_SHARE = 0.1
"""A difference below this share of the target does not matter."""
_QUIET_S = 6.0
"""The measured latency covers the last few seconds. After this time without a change, it belongs to
the cores and the load of then; twice the latency itself, if that is longer."""
_STEADY = 0.1
"""A load that moves by less than this share is steady."""
_NORMAL_BACKLOG = 1.4
"""A backlog up to this many times what arrives within the latency is that of a steady run."""
_AFTER_S = 120.0
"""No later than this after a decision: then the model knows more than it did."""


def settled(change: ChangedCores) -> list[int]:
    """The places of the ticks that show the steady state after a change, up to the next one."""
    found = []
    steady_rate, restless_s = 0.0, change.at.at_s
    for place in range(change.place + 1, change.until + 1):
        past = change.ticks[place]
        tick, latency = past.record.measurement, past.record.measurement.latency
        latency_s = 0.0 if latency is None else latency.mean_s
        normal = _NORMAL_BACKLOG * latency_s * tick.arrival_rate + 1.0
        moved = abs(tick.arrival_rate - steady_rate) > _STEADY * steady_rate
        if moved or tick.backlog_rows > normal or past.granted != change.after:
            steady_rate, restless_s = tick.arrival_rate, tick.at_s
        quiet = tick.at_s - restless_s >= max(_QUIET_S, 2.0 * latency_s)
        if quiet and latency is not None and tick.at_s <= change.at.at_s + _AFTER_S:
            found.append(place)
    return found


def question_of(change: ChangedCores) -> Question | None:
    """What the model of the decision has to predict; None where nothing was measured after it."""
    after = [change.ticks[place].record.measurement for place in settled(change)]
    if not after:
        return None
    rate = float(np.mean([tick.arrival_rate for tick in after]))
    return Question(rate, {one.name: max(one.tasks, 1) for one in after[-1].segments})


def model_off(
    change: ChangedCores, predicted_s: float | None, causes: Mapping[int, str]
) -> Fault | None:
    """The fault of a decision whose prediction was off.

    Ticks that missed the target for a reason of their own say nothing about the model.
    """
    target = change.at.settings.target
    quiet = [place for place in settled(change) if causes.get(place, "slow") == "slow"]
    latencies = [change.ticks[place].record.measurement.latency for place in quiet]
    means_s = [one.mean_s for one in latencies if one is not None]
    if predicted_s is None or target is None or not means_s:
        return None
    measured_s = float(np.mean(means_s))
    if abs(measured_s - predicted_s) <= _LEAST_SHARE * target.latency_s:
        return None
    off = measured_s / max(predicted_s, 1e-9)
    if 1.0 / OFF <= off <= OFF:
        return None
    than = "longer" if off > 1.0 else "shorter"
    why = (
        f"mean {predicted_s:.2f} s predicted for the load that came, {measured_s:.2f} s measured:"
        f" batches took {than} than was learned"
    )
    return Fault(kind="model_off", why=why)
