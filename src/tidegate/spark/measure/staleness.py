"""When measurements are too old to decide on."""

STALE_S = 10.0
"""Without a finished batch for so long (and five times the longest batch) there is nothing new."""
STUCK_S = 60.0
"""The same while a batch runs (and ten times the longest batch): then it hangs."""


def stale(quiet_s: float, longest_s: float, running: bool) -> str | None:
    """Why there is nothing new to decide on; None when there is.

    No batch has ended for `quiet_s`. A long batch that runs is not a stalled source: how many rows
    wait for it, and how many cores work on it, is known meanwhile.
    """
    limit_s = max(STUCK_S, 10.0 * longest_s) if running else max(STALE_S, 5.0 * longest_s)
    return f"no batch ended for {quiet_s:.0f} s" if quiet_s > limit_s else None
