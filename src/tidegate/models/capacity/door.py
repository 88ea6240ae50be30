"""How much load m machines sustain: the door to the capacity models (the MST paper).

`mst_capacity` says what a capacity model is and how many machines it asks for; `mst_curves` has the
paper's two curves and the choice between them; `mst_bayes` has the Bayesian form, whose intervals
are wide while samples are few.
"""

from tidegate.models.capacity.bayes import BayesianCapacity
from tidegate.models.capacity.curves import (
    MODEL_1,
    MODEL_2,
    CapacityCurve,
    Choice,
    FitRefused,
    Shape,
    choose,
    disagreements,
    fit,
)
from tidegate.models.capacity.machines import (
    CapacityModel,
    Samples,
    capacity_probability,
    machines_for,
)

__all__ = [
    "MODEL_1",
    "MODEL_2",
    "BayesianCapacity",
    "CapacityCurve",
    "CapacityModel",
    "Choice",
    "FitRefused",
    "Samples",
    "Shape",
    "capacity_probability",
    "choose",
    "disagreements",
    "fit",
    "machines_for",
]
