"""Operators that are no stations of their own, because they run in the tasks of another one.

A map without tasks of its own works where its rows are. It has no queue, and no core can be given
to it: its time per row belongs to the operator that runs it. Behind a source it is what DRS calls a
spout, which is not among the operators that share K_max.
"""

import dataclasses

from tidegate.control.measurement import Measurement


def only_stations(measurement: Measurement) -> Measurement:
    """The measurement with the time of such operators added to those that run them."""
    if all(operator.inside is None for operator in measurement.operators):
        return measurement
    more_s: dict[str, float] = {}
    for operator in measurement.operators:
        if operator.inside is not None:
            more_s[operator.inside] = more_s.get(operator.inside, 0.0) + operator.busy_s
    stations = []
    for operator in measurement.operators:
        if operator.inside is not None:
            continue
        busy_s = operator.busy_s + more_s.get(operator.name, 0.0)
        rate = operator.rows / busy_s if operator.rows and busy_s > 0.0 else operator.service_rate
        stations.append(dataclasses.replace(operator, busy_s=busy_s, service_rate=rate))
    return dataclasses.replace(measurement, operators=tuple(stations))
