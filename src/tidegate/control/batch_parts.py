"""The names of what a micro-batch's duration is made of, as far as Spark and its tasks tell it.

Those in `ADD_UP` add up to the duration; the others are a part of one of them, or core seconds.
"""

from typing import Final

OFFSETS: Final = "offsets"
"""Asking the sources how far they are."""
PLANNING: Final = "planning"
"""Spark's planning of the query."""
LOG: Final = "log"
"""Spark's log of offsets before the work, and of commits after it."""
OWN_PLAN: Final = "plan"
"""Waiting for a decision, the batch's plan, and the DataFrames of its operators."""
STAGES: Final = "stages"
"""Running the stages, without the tasks' own time: scheduling, shuffles, Python workers. Of a
foreign query it includes the tasks and the sink, because Spark tells them as one."""
STARTING: Final = "starting"
"""From the start of the first task of a stage to the end of its last, beyond the slowest task."""
SLOWEST: Final = "slowest"
"""The slowest task of each stage, in the operators."""
COMMIT: Final = "commit"
"""What follows the work: reports, hand-over, the manifest, cleaning."""
OTHER: Final = "other"
"""Time that nobody tells about."""
BESIDE: Final = "beside"
"""The part of `SLOWEST` outside the user's functions: reading and writing state."""
STATE: Final = "state"
"""Core seconds in which the tasks of a foreign query wrote their state; a part of `STAGES`."""

ADD_UP: Final = (OFFSETS, PLANNING, LOG, OWN_PLAN, STAGES, STARTING, SLOWEST, COMMIT, OTHER)
