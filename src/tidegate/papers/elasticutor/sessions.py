"""How many tasks Elasticutor's experiments have on one machine, and the master that they need."""

from tidegate.papers.sessions import spark_on

__all__ = ["LOCAL", "SHARDS", "TASKS", "spark_on"]

TASKS = 24
"""Tasks that stand for as many cores, because they wait."""
LOCAL = f"local[{TASKS + 2}]"
"""Two more than the tasks, for the source."""
SHARDS = 32 * TASKS
"""The paper has 8,192 shards on 256 cores, which is 32 for each core."""
