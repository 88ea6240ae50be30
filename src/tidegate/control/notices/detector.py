"""Finds what a person should hear of, from the records of a run and the failures of its control.

It is pure: the same records give the same notices. Every kind is an alarm of its own, which begins
and ends in turn.
"""

from collections.abc import Mapping
from typing import Any

from tidegate.control.control_failure import ControlFailure
from tidegate.control.judge import Judge, statistic_of
from tidegate.control.notice import (
    AT_MAXIMUM,
    CONTROL_FAILED,
    KINDS,
    NO_EFFECT,
    NOT_GRANTED,
    SHEDDING,
    TARGET_MISSED,
    Notice,
)
from tidegate.control.notices.alarm import Alarm
from tidegate.control.overdue import FULL
from tidegate.control.record import Record
from tidegate.units import format_duration

MISSED_S = 30.0
"""How long the target must be missed before that is told, unless another time is given."""
_MET_AGAIN = 1.0 / 3.0
"""It is met again when it was met for this share of that time."""
AT_MAXIMUM_S, BELOW_MAXIMUM_S = 5.0, 30.0
KEEPS_ALL_S = 10.0
"""Shedding has ended when no row was shed for so long. It is told at once when it begins."""
FAILED_TICKS = 3
"""So many failed ticks in a row are told; one alone is tried again and forgotten."""
WORKS_AGAIN_S = 10.0
_ALWAYS_AT_MAXIMUM = ("static", "drs-fixed")
"""Policies that ask for all cores from the beginning, which is no news."""

_MEANWHILE = {
    TARGET_MISSED: "its target was missed",
    AT_MAXIMUM: "it had all cores that it may have",
    CONTROL_FAILED: "its control failed",
    SHEDDING: "rows were shed",
    NO_EFFECT: "more cores had no effect",
    NOT_GRANTED: "executors that were requested did not come",
}


class NoticeDetector:
    """Sees every record and every failed tick of one run, in time order."""

    def __init__(self, missed_s: float = MISSED_S) -> None:
        self._alarms = {
            TARGET_MISSED: Alarm(after_s=missed_s, clear_s=_MET_AGAIN * missed_s),
            AT_MAXIMUM: Alarm(after_s=AT_MAXIMUM_S, clear_s=BELOW_MAXIMUM_S),
            CONTROL_FAILED: Alarm(after_s=0.0, clear_s=WORKS_AGAIN_S),
            SHEDDING: Alarm(after_s=0.0, clear_s=KEEPS_ALL_S),
            NO_EFFECT: Alarm(after_s=0.0, clear_s=0.0),
            NOT_GRANTED: Alarm(after_s=0.0, clear_s=0.0),
        }
        self._assembly: Mapping[str, Any] = {}
        """What the controller is built from, as the records tell it."""
        self._judge: Judge | None = None
        self._statistic = "mean"
        self._now_s = 0.0
        self._shed_rows = 0
        """Rows that were shed since shedding began."""

    def missed_after(self, missed_s: float) -> None:
        """Change how long the target must be missed before that is told."""
        alarm = self._alarms[TARGET_MISSED]
        alarm.after_s, alarm.clear_s = missed_s, _MET_AGAIN * missed_s

    def observe(self, record: Record) -> tuple[Notice, ...]:
        """What begins or ends with a tick."""
        tick = record.measurement
        self._now_s = max(self._now_s, tick.at_s)
        if record.assembly is not None:
            self._assembly = record.assembly
        if self._judge is None or record.assembly is not None:
            self._statistic = statistic_of(record)
            self._judge = Judge(tick.at_s - tick.interval_s, statistic_of(record))
        shed = sum(source.shed for source in tick.sources)
        if self._alarms[SHEDDING].raised or shed:
            self._shed_rows += shed
        found = (
            self._target(record, self._judge.latency_s(record)),
            self._maximum(record),
            self._failure(None),
            self._shedding(record, shed),
            self._effect(record),
            self._grants(record),
        )
        return tuple(one for one in found if one is not None)

    def failed(
        self, failure: ControlFailure, at_s: float, *, final: bool = False
    ) -> tuple[Notice, ...]:
        """What begins with a tick that failed; `final`: no other will be tried."""
        self._now_s = max(self._now_s, at_s)
        found = self._failure(failure, final=final)
        return () if found is None else (found,)

    def over(self, at_s: float) -> tuple[Notice, ...]:
        """The run has ended, and with it whatever had begun."""
        self._now_s = max(self._now_s, at_s)
        return tuple(
            self._notice(kind, f"the run ended while {_MEANWHILE[kind]}", ended=True)
            for kind in KINDS
            if self._alarms[kind].clear()
        )

    def _target(self, record: Record, latency_s: float | None) -> Notice | None:
        target_s, tick = record.target_s, record.measurement
        missed = target_s is not None and latency_s is not None and latency_s > target_s
        began_s = tick.at_s - tick.interval_s
        if target_s is None or not self._alarms[TARGET_MISSED].see(missed, self._now_s, began_s):
            return None
        figures = {"target_s": target_s, **_figures(record)}
        target = format_duration(target_s)
        if not missed:
            return self._notice(
                TARGET_MISSED, f"the target of {target} is met again", record, figures, ended=True
            )
        assert latency_s is not None  # it is missed
        since_s = self._now_s - self._alarms[TARGET_MISSED].since_s
        return self._notice(
            TARGET_MISSED,
            f"the target of {target} has been missed for {format_duration(since_s)}:"
            f" {self._statistic} latency {format_duration(latency_s)} at"
            f" {tick.arrival_rate:,.0f} rows/s on {_cores(tick.cores_granted)}",
            record,
            {"latency_s": latency_s, **figures},
        )

    def _maximum(self, record: Record) -> Notice | None:
        bounds = self._assembly.get("bounds") or {"least": 0, "most": 0}
        least, most = int(bounds["least"]), int(bounds["most"])
        whole = int(self._assembly.get("cores_per_executor", 1))
        most = most // whole * whole or most  # executors come whole
        dry_run = (self._assembly.get("limits") or {}).get("dry_run", False)
        tick = record.measurement
        at_most = (
            tick.cores_asked >= most > least
            and not dry_run
            and record.policy not in _ALWAYS_AT_MAXIMUM
        )
        if not self._alarms[AT_MAXIMUM].see(at_most, self._now_s):
            return None
        figures = {"most_cores": float(most), **_figures(record)}
        if not at_most:
            what = f"fewer than the most cores are in use again: {_cores(tick.cores_asked)}"
            return self._notice(AT_MAXIMUM, what, record, figures, ended=True)
        what = (
            f"the maximum of {_cores(most)} is reached, at {tick.arrival_rate:,.0f} rows/s: no more"
            " can be added"
        )
        return self._notice(AT_MAXIMUM, what, record, figures)

    def _failure(self, failure: ControlFailure | None, *, final: bool = False) -> Notice | None:
        alarm = self._alarms[CONTROL_FAILED]
        if failure is None:
            if not alarm.see(False, self._now_s):
                return None
            return self._notice(CONTROL_FAILED, "control works again", ended=True)
        if not (alarm.raised or final or failure.ticks >= FAILED_TICKS):
            return None
        if not alarm.see(True, self._now_s, failure.since_s):
            return None
        end = "; it has ended for good" if final else ""
        return self._notice(
            CONTROL_FAILED, f"{failure.words}{end}", figures={"failed_ticks": float(failure.ticks)}
        )

    def _shedding(self, record: Record, shed: int) -> Notice | None:
        tick = record.measurement
        by_class = tick.keep_by_class.values()
        sheds = tick.keep < 1.0 or any(keep < 1.0 for keep in by_class) or shed > 0
        if not self._alarms[SHEDDING].see(sheds, self._now_s):
            return None
        figures = {"keep": tick.keep, "shed_rows": float(self._shed_rows), **_figures(record)}
        if sheds:
            self._shed_rows = shed
            what = (
                f"rows are shed: {100.0 * tick.keep:.0f} % are kept at {tick.arrival_rate:,.0f}"
                f" rows/s on {_cores(tick.cores_granted)}"
            )
            return self._notice(SHEDDING, what, record, {**figures, "shed_rows": float(shed)})
        what = f"no row is shed any more; {self._shed_rows:,d} rows were"
        return self._notice(SHEDDING, what, record, figures, ended=True)

    def _effect(self, record: Record) -> Notice | None:
        found = record.no_effect
        if not self._alarms[NO_EFFECT].see(found is not None, self._now_s):
            return None
        if found is None:
            return self._notice(
                NO_EFFECT, "more cores may be added again", record, _figures(record), ended=True
            )
        figures = {
            "from_cores": float(found.from_cores),
            "to_cores": float(found.to_cores),
            "scale_outs": float(found.times),
            "duration_ratio": found.duration_ratio,
            "expected_ratio": found.expected_ratio,
            **_figures(record),
        }
        return self._notice(NO_EFFECT, found.words, record, figures)

    def _grants(self, record: Record) -> Notice | None:
        found = record.measurement.overdue
        if not self._alarms[NOT_GRANTED].see(found is not None, self._now_s):
            return None
        if found is None:
            what = "no executor is waited for any more"
            return self._notice(NOT_GRANTED, what, record, _figures(record), ended=True)
        figures = {
            "missing_executors": float(found.missing),
            "requested_executors": float(found.requested),
            "waited_s": found.waited_s,
            **_figures(record),
        }
        return self._notice(NOT_GRANTED, f"{found.words}: {FULL}", record, figures)

    def _notice(
        self,
        kind: str,
        what: str,
        record: Record | None = None,
        figures: Mapping[str, float] | None = None,
        *,
        ended: bool = False,
    ) -> Notice:
        since_s = self._alarms[kind].since_s
        if ended:
            what = f"{what}, after {format_duration(max(self._now_s - since_s, 0.0))}"
        return Notice(
            kind=kind,
            ended=ended,
            since_s=since_s,
            at_s=self._now_s,
            what=what,
            why="" if record is None else record.decision.reason,
            figures=figures or {},
        )


def _figures(record: Record) -> dict[str, float]:
    """What every notice of a tick tells."""
    tick = record.measurement
    return {
        "arrival_rate": tick.arrival_rate,
        "backlog_rows": tick.backlog_rows,
        "cores_asked": float(tick.cores_asked),
        "cores_granted": float(tick.cores_granted),
    }


def _cores(count: int) -> str:
    return "1 core" if count == 1 else f"{count} cores"
