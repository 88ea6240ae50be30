"""Made-up records of a run: a surge, more cores in response, then a low load again."""

from tidegate.control.decision import Decision, hold
from tidegate.control.measurement import Latency, Measurement, OperatorMeasurement
from tidegate.control.record import Record

START_S = 1_700_000_000.0
TARGET_S = 2.0
REASONS = {
    10: "the forecast of 2,000 rows/s needs 4 cores to stay within 2 s",
    14: "task 1 of per_ad does 1.6 times the mean & <b>theta</b> is 1.2",
    20: "the machine has no more cores",
    35: "500 rows/s need 2 cores",
}
NOTE = "shard 7 alone is hotter than a task: no move can help"


def surge(ticks: int = 40) -> list[Record]:
    return [record(tick) for tick in range(ticks)]


def record(tick: int) -> Record:
    """The record of one tick.

    The load rises at tick 8 and falls at 28. No batch ends in tick 12. Ticks 9 to 13 are late.
    """
    high = 8 <= tick < 28
    cores = 2 if tick <= 10 or tick > 35 else 4
    mean_s = 3.0 if 9 <= tick <= 13 else 1.0 + 0.01 * tick
    latency = Latency(mean_s=mean_s, p50_s=mean_s * 0.9, p95_s=mean_s * 1.6, p99_s=mean_s * 2)
    measurement = Measurement(
        at_s=START_S + tick + 1,
        interval_s=1.0,
        arrival_rate=2000.0 if high else 500.0,
        processed_rate=1800.0 if high else 600.0,
        backlog_rows=900.0 if high else 50.0,
        cores_asked=cores,
        cores_granted=cores if tick != 11 else 2,
        saturated=9 <= tick <= 13,
        cores_busy=cores * 0.75,
        latency=None if tick == 12 else latency,
        operators=(
            OperatorMeasurement(
                name="parse", arrival_rate=1000.0, service_rate=900.0, tasks=cores, busy_s=0.5
            ),
            OperatorMeasurement(
                name="per_ad",
                arrival_rate=1000.0,
                service_rate=900.0,
                tasks=cores,
                imbalance=1.6 if 8 <= tick < 15 else 1.1,
                state_bytes=3 * 2**20,
                route=tuple(shard % cores for shard in range(8)),
                shard_rows=(100,) * 8,
            ),
        ),
        stale="no batch ended for 1 s" if tick == 12 else None,
    )
    return Record(
        tick=tick,
        policy="latency",
        target_s=TARGET_S,
        measurement=measurement,
        decision=decision(tick),
        acted=tick in REASONS and tick != 20,
        held_back="the maximum is 4" if tick == 20 else None,
        beliefs={"main.a0_s": 0.2},
        predicted_latency_s=1.2,
    )


def decision(tick: int) -> Decision:
    reason = REASONS.get(tick)
    if tick == 10 and reason:
        return Decision(reason=reason, cores=4, tasks={"per_ad": 4, "parse": 4})
    if tick == 14 and reason:
        return Decision(reason=reason, moves={"per_ad": {1: 0, 3: 2}}, notes=(NOTE,))
    if tick == 20 and reason:
        return Decision(reason=reason, cores=8)
    if tick == 35 and reason:
        return Decision(reason=reason, cores=2, tasks={"per_ad": 2, "parse": 2})
    return hold(f"{1 + tick / 100:.2f} s is within 2 s")
