"""The names by which a person selects policies and shedders.

`control/assemble.py` builds what they name. They have a module of their own because the command
line shows them in its help, and should not have to import every policy for that.
"""

from tidegate.control import capacity_options as capacity
from tidegate.control import drs_options as drs
from tidegate.control.policy_text import split_policy
from tidegate.errors import AskedWrongly, nearest

DEFAULT_POLICY = "latency"
PRICED = capacity.PRICED
PRICED_BY_CYCLE = capacity.PRICED_BY_CYCLE
ALIASES = {"tidegate": DEFAULT_POLICY, "mst-arma": "mst-4", "mst-priced": PRICED}
"""Other names of a policy: the default policy used to be called `tidegate`."""
BASELINES = ("threshold", "ds2", "spark-dynamic-allocation", "static")
PIPELINE_POLICIES = (
    DEFAULT_POLICY,
    *drs.POLICIES,
    "flow",
    *BASELINES,
    *capacity.POLICIES,
)
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
    if written is None:
        return found
    text = f"{found}({written})"
    if found in drs.POLICIES:
        options = str(drs.drs_options(text))
    elif found in capacity.POLICIES:
        options = str(capacity.capacity_options(text))
    else:
        raise AskedWrongly(
            f"policy '{name}': only {', '.join(drs.POLICIES)}, mst-0 to mst-7 and {PRICED} take"
            f" options; write '{base}'"
        )
    return f"{found}({options})" if options else found


def shedder_name(name: str) -> str:
    """The shedder of this name; any other name is refused."""
    if name not in SHEDDERS:
        raise AskedWrongly(f"there is no shedder '{name}'{nearest(name, SHEDDERS)}")
    return name
