"""An application: a pipeline with a generator of its load and a verifier of its answers.

The papers' applications are written in this form, so that one command runs any of them, and one
experiment runs on any of them. An application computes real answers. With `stretch` each operator
takes the paper's time per tuple, by waiting, so that many tasks are as fast as many cores.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from pyspark.sql import SparkSession

from tidegate.errors import AskedWrongly, check_options
from tidegate.pipelines.stream import Stream
from tidegate.workload.profile import Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How an application is to run."""

    rate: Profile
    seconds: float
    """How long rows arrive for."""
    seed: int = 1
    stretch: bool = False
    """Whether operators take the paper's time per tuple, by waiting."""
    pace: float = 1.0
    """What the paper's times are divided by, for experiments whose load needs other cores."""
    cut: bool = False
    """Whether each operator is a segment of its own, so that operators work side by side."""
    extra: Mapping[str, str] = field(default_factory=dict)
    """Options that only this application has, as texts by name."""

    def times(self, stretched_s: Mapping[str, float]) -> dict[str, float | None]:
        """Seconds per tuple of each operator; None: as fast as it is."""
        return {
            name: seconds / self.pace if self.stretch else None
            for name, seconds in stretched_s.items()
        }

    @property
    def arrived(self) -> int:
        """How many rows arrive in all."""
        return self.rate.count(round(self.seconds * 1000))


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether the answers of a run are right."""

    correct: bool
    said: str
    """What was compared with what, in one sentence."""
    figures: Mapping[str, float] = field(default_factory=dict)
    """Further figures: the accuracy of a detector, say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltApplication:
    """An application that is ready to start."""

    stream: Stream
    """A stream of the pipeline; its graph is the whole pipeline."""
    verify: Callable[[str], Verdict]
    """Compares the answers with a sequential reference; it is given the checkpoint of a run in
    which all rows were processed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """What `tidegate app` lists and runs."""

    name: str
    paper: str
    about: str
    rate: str
    """The load that it runs under unless another one is asked for, as a rate profile."""
    target: str
    cores: tuple[int, int]
    operators: tuple[str, ...]
    """The paper's operators in their order; a split of cores is written in this order."""
    stretched_s: Mapping[str, float]
    """Seconds per tuple of each operator in the paper, or modelled where it prints none."""
    most_tasks: Callable[[Mapping[str, str]], Mapping[str, int]]
    """How many tasks each operator can have, from the texts of the options."""
    build: Callable[[SparkSession, Settings, Path], BuiltApplication]
    """Makes the pipeline; the directory is for the rows that its sinks collect."""
    seconds: float = 60.0
    needs: tuple[str, ...] = ()
    """Modules that it imports beyond those of Tidegate itself (the extra `apps`)."""
    options: Mapping[str, str] = field(default_factory=dict)
    """What each option means that only this application has, by name."""
    read_options: Callable[[Mapping[str, str]], object] = dict
    """Reads the texts of options and refuses wrong ones, so that this needs no Spark."""
    behind: Callable[[Stream, Settings], Stream] | None = None
    """Puts the operators behind any source of numbered rows, as for a calibration; None: they need
    a source of their own. Event time follows the settings' rate."""

    def check(self) -> None:
        """Refuse to run without the packages that it needs."""
        missing = [name for name in self.needs if find_spec(name) is None]
        if missing:
            raise AskedWrongly(
                f"the application '{self.name}' needs {', '.join(missing)}; install the extra:"
                " pip install 'tidegate[apps]' (in a checkout: make setup)"
            )

    def check_options(self, extra: Mapping[str, str]) -> None:
        """Refuse options that it does not have, and wrong values of those that it has."""
        check_options(extra, self.options, f"the application '{self.name}'")
        self.read_options(extra)

    def check_split(self, split: Mapping[str, int], extra: Mapping[str, str]) -> None:
        """Refuse more tasks than an operator can have with these options."""
        most = self.most_tasks(extra)
        for name, tasks in split.items():
            if not 1 <= tasks <= most[name]:
                raise AskedWrongly(
                    f"the operator '{name}' of '{self.name}' cannot have {tasks} tasks; give 1 to"
                    f" {most[name]}"
                )
