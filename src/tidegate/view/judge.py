"""Says of each tick whether it met its target, as notices do (`control/judge.py`)."""

from tidegate.control.judge import Judge, Statistic, judged_s, statistic_of

__all__ = ["Judge", "Statistic", "judged_s", "statistic_of"]
