"""How many tasks an operator may have, as the user says it."""

from tidegate.errors import AskedWrongly
from tidegate.pipelines.graph import TaskBounds

Tasks = int | tuple[int, int | None] | None
"""A number of tasks; the fewest and the most (None: no maximum); or None for any number."""


def task_bounds(tasks: Tasks, name: str, shards: int | None) -> TaskBounds:
    """The bounds of the operator `name`; a keyed operator has at most a task per shard."""
    least, most = (tasks, tasks) if isinstance(tasks, int) else (tasks or (1, None))
    if least < 1 or (most is not None and most < least):
        raise AskedWrongly(
            f"operator '{name}': tasks={tasks}; give a number of at least 1, or "
            "(least, most) with least <= most"
        )
    if shards is not None and (least > shards or (most or 0) > shards):
        raise AskedWrongly(
            f"operator '{name}': tasks={tasks}, but there are only {shards} shards and each task "
            "needs one; lower tasks or raise shards"
        )
    return TaskBounds(least, shards if most is None else most)
