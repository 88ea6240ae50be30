"""What runs in the tasks that read a source, and so has no more tasks than there are readers."""

from collections.abc import Sequence

from tidegate.control.measurement import Measurement


def read_inside(measurement: Measurement, segment: str) -> Sequence[str] | None:
    """Operators that run in the tasks that read; empty for a query of others, None for no operator.

    A map with tasks of its own has its rows dealt to them, however many tasks read.
    """
    operators = [one for one in measurement.operators if one.segment == segment]
    names = {one.name for one in operators}
    inside = [one.name for one in operators if one.inside is not None and one.inside not in names]
    return inside if inside or not operators else None
