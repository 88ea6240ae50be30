"""Whether what was kept of parts of the rows can be merged without any difference."""

from enum import IntEnum


class Merges(IntEnum):
    """Whether states of parts of the rows can be merged to exactly the state of all rows."""

    NEVER = 0
    """As the total of floats: their sum depends on the order in which they are added."""
    IN_ORDER = 1
    """If the parts follow one another: of equal rows, the last one is picked."""
    IN_ANY_ORDER = 2
