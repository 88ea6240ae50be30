"""Shedders by the name a person selects them with."""

from tidegate.control.shedding.feedback_shedder import FeedbackShedder, PaperShedder
from tidegate.control.shedding.model_shedder import ModelShedder
from tidegate.control.shedding.shedder import Shedder
from tidegate.errors import AskedWrongly, nearest

SHEDDERS = ("model", "feedback", "paper")
DEFAULT_SHEDDER = "model"
"""The better one: `tidegate bench shed` has both, and the paper's, in one run."""


def shedder(name: str, target_s: float) -> Shedder:
    """The shedder of this name."""
    if name == "model":
        return ModelShedder(target_s)
    if name == "feedback":
        return FeedbackShedder(target_s)
    if name == "paper":
        return PaperShedder(target_s)
    raise AskedWrongly(f"there is no shedder '{name}'{nearest(name, SHEDDERS)}")
