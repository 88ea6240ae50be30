"""The names by which a person selects policies and shedders.

`control/assemble.py` builds what they name. They have a module of their own because the command
line shows them in its help, and should not have to import every policy for that.
"""

from tidegate.control.drs_options import drs_options, split_policy
from tidegate.errors import AskedWrongly, nearest

DEFAULT_POLICY = "latency"
ALIASES = {"tidegate": DEFAULT_POLICY}
"""Other names of a policy: the default policy used to be called `tidegate`."""
PIPELINE_POLICIES = (
    DEFAULT_POLICY,
    "drs",
    "drs-fixed",
    "flow",
    "threshold",
    "spark-dynamic-allocation",
    "static",
)
PRICED = "priced-capacity"
PRICED_BY_CYCLE = "priced-capacity-cycle"
DEFAULT_MACHINE_POLICY = PRICED
"""The default of a backtest, which counts machines by the minute."""
SHEDDERS = ("model", "feedback", "paper")
DEFAULT_SHEDDER = "model"
"""The better of `model` and `feedback`; `tidegate bench shed` compares all three in one run."""


def policy_name(name: str) -> str:
    """The policy of this name or alias, with its options behind it; any other is refused."""
    base, written = split_policy(name)
    found = ALIASES.get(base, base)
    if found not in PIPELINE_POLICIES:
        raise AskedWrongly(f"there is no policy '{base}'{nearest(base, PIPELINE_POLICIES)}")
    options = "" if written is None else str(drs_options(name))
    return f"{found}({options})" if options else found


def shedder_name(name: str) -> str:
    """The shedder of this name; any other name is refused."""
    if name not in SHEDDERS:
        raise AskedWrongly(f"there is no shedder '{name}'{nearest(name, SHEDDERS)}")
    return name
