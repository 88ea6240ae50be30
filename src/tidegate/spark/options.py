"""Every option of `start` and `attach`, declared once: name, type, default and a line of help.

The two calls take their keywords from here, so type checkers and `help()` know them; the command
line takes its defaults and help texts from here; `python -m tidegate.spark.options` prints the
table of docs/options.md. No Spark is needed to read it.
"""

import inspect
from collections import abc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, TypedDict, TypeVar, get_args, get_origin, get_type_hints

from tidegate.control.capacity_options import LEARN_NOTHING, MST
from tidegate.control.decision import Decision
from tidegate.control.measurement import Measurement
from tidegate.control.names import DEFAULT_POLICY, PIPELINE_POLICIES, SHEDDERS
from tidegate.control.notice import Notice
from tidegate.errors import AskedWrongly, nearest

_NAMED = tuple(name for name in PIPELINE_POLICIES if name not in MST)
Count = int | tuple[int, int] | None
"""A number, or the fewest and the most."""
Approval = Callable[[Decision, Measurement], bool | Decision]
"""Asked before a decision is acted on: yes, no, or what to do instead."""
NoticeFunction = Callable[[Notice], object]
"""Called with every notice."""
CHANGEABLE = (
    *("target", "percentile", "cores", "executors", "policy", "capacity", "catch_up"),
    *("scale_in_after", "between_changes", "excluded", "floors", "dry_run", "notify"),
    "notify_after",
)
"""Options that can change while a pipeline runs (`update`)."""
COMBINE = ("auto", "always", "never")
SECRET = ("notify",)
"""Options whose values are not shown: the address of a webhook lets anybody post."""
IN_CODE = ("approve",)
"""Options that cannot be written on a command line or in a file."""


@dataclass(frozen=True, slots=True)
class Option:
    """What is said of an option besides its name and type."""

    help: str
    default: Any = None


class ControlOptions(TypedDict, total=False):
    """How a target is kept: what `start` and `attach` have in common."""

    target: Annotated[
        str | None, Option("The latency to keep, such as '2 seconds'; `attach` needs one.")
    ]
    percentile: Annotated[
        int | None, Option("What the target is for: 50, 95 or 99; without it, the mean.")
    ]
    cores: Annotated[
        Count,
        Option(
            "Cores: a number, or the fewest and the most; without it, from 1 to all that the master"
            " has. On a cluster they are asked for in whole executors."
        ),
    ]
    executors: Annotated[
        Count, Option("The same in executors, on a cluster; give this or `cores`, not both.")
    ]
    tick: Annotated[str, Option("How often it measures and decides.", "1 second")]
    catch_up: Annotated[str, Option("Time within which a backlog is to be drained.", "5 seconds")]
    scale_in_after: Annotated[
        str,
        Option(
            "How long fewer cores must have been enough before some are released; three times the"
            " observed time to grant cores, when that is longer.",
            "10 seconds",
        ),
    ]
    between_changes: Annotated[
        str | None, Option("The least time between two changes of cores or tasks.")
    ]
    first_change: Annotated[
        str | None,
        Option("The least time from the start to the first change; shedding does not wait for it."),
    ]
    excluded: Annotated[
        Sequence[str],
        Option(
            "Times without changes: '09:00-10:00' (UTC), or 'mon-fri 09:00-10:00 Europe/Berlin'.",
            (),
        ),
    ]
    floors: Annotated[
        Sequence[str],
        Option(
            "Times with a minimum of cores: 'mon-fri 08:30-10:00 Europe/Berlin cores>=8'. The cores"
            " are asked for as long before as the cluster takes to grant them.",
            (),
        ),
    ]
    dry_run: Annotated[bool, Option("Decide and record, but change nothing.", False)]
    page: Annotated[
        int | str | None,
        Option(
            "Serve a live page and Prometheus metrics at this port of 127.0.0.1; 0 takes any free"
            " one. 'HOST:PORT' listens elsewhere and asks for a token. Pipelines of one process"
            " with the same port share a page."
        ),
    ]
    notify: Annotated[
        str | NoticeFunction | Sequence[str | NoticeFunction],
        Option(
            "Who is told when the target is missed, the maximum is reached, control fails, rows are"
            " shed or more cores have no effect, and when that ends: the address of a webhook"
            " (https://...), in code a function of a notice, or a list. The log always has it.",
            "log",
        ),
    ]
    notify_after: Annotated[
        str, Option("How long the target must be missed before that is told.", "30 seconds")
    ]
    approve: Annotated[
        Approval | None,
        Option(
            "A function of (decision, measurement) that is asked before a change: True lets it"
            " pass, False refuses it, another Decision replaces it. An error, or no answer within"
            " 2 s, counts as no."
        ),
    ]


class StartOptions(ControlOptions, total=False):
    """What a pipeline can be started with."""

    policy: Annotated[
        str,
        Option(
            f"Who decides. `{DEFAULT_POLICY}` keeps the target with as few cores as it can. To"
            f" compare with: {', '.join(_NAMED[1:])}, mst-0 to mst-7 (docs/decisions.md). Some take"
            " options in brackets: 'drs(model=gigk, t_min=500ms, w=6, resplit=better)',"
            " 'mst-7(cycle=10s, qos=0.95, startup=2s)'.",
            DEFAULT_POLICY,
        ),
    ]
    capacity: Annotated[
        str | Path | None,
        Option(
            "A file that `tidegate calibrate` has written: what the pipeline can process on numbers"
            f" of cores. For {MST[0]} to {MST[-1]} and `priced-capacity`."
            f" {', '.join(LEARN_NOTHING[:-1])} and {LEARN_NOTHING[-1]} need it; without it the"
            " others learn it."
        ),
    ]
    shed: Annotated[
        bool | str,
        Option(
            "Drop rows (shed them) when cores cannot come in time or are not allowed: True, or a"
            f" shedder ({', '.join(SHEDDERS)}).",
            False,
        ),
    ]
    shed_backlog: Annotated[
        bool,
        Option(
            "Shed rows of a backlog as well: rows that waited at the start, or behind a read limit"
            " of the source. Without it they are all processed, however late.",
            False,
        ),
    ]
    trigger: Annotated[
        str | None,
        Option(
            "Begin a micro-batch at this interval; without it, one follows the other. 'available"
            " now' processes what the sources have at the start and ends; 'once' does so in one"
            " micro-batch."
        ),
    ]
    idle_after: Annotated[
        str,
        Option(
            "How long one of several sources delivers no row with an event time, while batches run,"
            " before the watermark no longer waits for it; it counts again with its next row.",
            "5 minutes",
        ),
    ]
    tasks: Annotated[
        int | None, Option("Tasks that operators begin with; without it, the session's cores.")
    ]
    cache: Annotated[
        str | Path | None,
        Option("The nodes' own directory of state files; default: below spark.local.dir."),
    ]
    sample_every: Annotated[int, Option("Note the arrival of one row in this many.", 1)]
    combine: Annotated[
        str,
        Option(
            "When rows are combined per key before they are sent to the key's task: 'auto', where"
            " it saves time, 'always' or 'never'. Only functions are whose results stay the same.",
            "auto",
        ),
    ]
    warm_up: Annotated[
        bool,
        Option(
            "Warm up before the first row is read, and executors that come later before they count:"
            " Python workers start, modules are imported and Spark compiles the operators' plans,"
            " without rows.",
            True,
        ),
    ]
    shared_checkpoint: Annotated[
        bool,
        Option(
            "All machines mount the directory of a checkpoint that is given as a path; needed on a"
            " cluster of several machines.",
            False,
        ),
    ]
    savepoint: Annotated[
        str | Path | None,
        Option(
            "A savepoint that a new checkpoint begins with (`tidegate savepoint`); without effect"
            " once the checkpoint has begun."
        ),
    ]
    versions: Annotated[
        int | str,
        Option(
            "How many versions of the state are kept, or for how long, such as '7 days': then up to"
            " 60 of that time. `tidegate savepoint --version N` goes back to one.",
            3,
        ),
    ]
    renamed: Annotated[
        Mapping[str, str] | None,
        Option("Keyed operators that have another name than in the checkpoint: {'old': 'new'}."),
    ]
    dropped: Annotated[
        Sequence[str],
        Option(
            "Operators or segments whose state in the checkpoint is forgotten if it no longer fits"
            " the pipeline; 'operator.column' for a single column.",
            (),
        ),
    ]
    same_state: Annotated[
        Sequence[str],
        Option("Operators whose changed function goes on with the state in the checkpoint.", ()),
    ]


class AttachOptions(ControlOptions, total=False):
    """What running queries can be attached with."""

    records: Annotated[
        str | Path | None, Option("A directory to write records to; without it, none.")
    ]


class ProgramOptions(AttachOptions, total=False):
    """What `tidegate run` takes: the options of `attach`, and what a program is started with."""

    master: Annotated[
        str | None,
        Option(
            "The Spark master of a program that sets none itself; without it, Spark's own default,"
            " local[*]."
        ),
    ]
    conf: Annotated[
        Sequence[str],
        Option("A Spark setting that the program leaves open, KEY=VALUE; may be repeated.", ()),
    ]
    kafka: Annotated[
        bool | None,
        Option(
            "Whether the session gets Spark's Kafka connector; without it, when the program asks"
            " for the format kafka."
        ),
    ]
    quiet: Annotated[bool, Option("Print nothing besides what the program prints.", False)]


@dataclass(frozen=True, slots=True)
class Declared:
    """An option as it was declared."""

    name: str
    type: Any
    default: Any
    help: str

    @property
    def several(self) -> bool:
        """Whether it takes a list, or one value as well as a list."""
        kinds = get_args(self.type) if isinstance(self.type, UnionType) else (self.type,)
        return any(get_origin(kind) is Sequence for kind in kinds)


Kind = type[StartOptions] | type[AttachOptions] | type[ProgramOptions]
Call = TypeVar("Call", bound=Callable[..., Any])


def declared(kind: Kind) -> dict[str, Declared]:
    """The options of a call: those that both calls have, then its own."""
    hints = get_type_hints(kind, include_extras=True)
    common = get_type_hints(ControlOptions)
    names = sorted(hints, key=lambda name: name not in common)
    left_out = IN_CODE if kind is ProgramOptions else ()
    return {name: _declared(name, hints[name]) for name in names if name not in left_out}


def option(name: str, kind: Kind = StartOptions) -> Declared:
    """One option, for a command that offers it."""
    return declared(kind)[name]


def filled(kind: Kind, given: Mapping[str, Any]) -> dict[str, Any]:
    """What was given, with defaults for the rest; an option that does not exist is refused."""
    known = declared(kind)
    for name in given:
        if name not in known:
            raise AskedWrongly(f"there is no option '{name}'{nearest(name, known)}")
        if not _fits(given[name], known[name].type):
            shown = type(given[name]).__name__ if name in SECRET else repr(given[name])
            raise AskedWrongly(
                f"{name}={shown}: expected {_shown(known[name].type)}. {known[name].help}"
            )
    return {name: given.get(name, one.default) for name, one in known.items()}


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value is of a declared type, as a caller would read it; numpy's numbers are."""
    if isinstance(kind, UnionType):
        return any(_fits(value, one) for one in get_args(kind))
    if kind is NoneType:
        return value is None
    if kind is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    origin = get_origin(kind)
    if origin is None:
        return isinstance(value, kind)
    if origin is tuple:
        return isinstance(value, tuple | list) and len(value) == 2
    return isinstance(value, origin) and not isinstance(value, str)


def _shown(kind: Any) -> str:
    """A declared type in words."""
    words = {
        str: "text",
        int: "a whole number",
        bool: "True or False",
        NoneType: "None",
        Path: "a path",
        tuple: "two of them",
        Mapping: "a mapping of names",
        Sequence: "a list",
        abc.Callable: "a function",
    }
    kinds = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    return " or ".join(words.get(get_origin(one) or one, str(one)) for one in kinds)


def takes(kind: Kind, only: Sequence[str] | None = None) -> Callable[[Call], Call]:
    """Shows the options in the signature and docstring of a function that takes them."""

    def documented(function: Call) -> Call:
        describe(function, kind, only)
        return function

    return documented


def describe(function: Callable[..., Any], kind: Kind, only: Sequence[str] | None = None) -> None:
    """Gives a function that takes `**options` the signature and docstring of their declaration.

    `only` names the options that it takes; None: all of them.
    """
    signature = inspect.signature(function)
    shown = [one for one in declared(kind).values() if only is None or one.name in only]
    positional = [
        one
        for one in signature.parameters.values()
        if one.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    keywords = [
        inspect.Parameter(
            one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=one.type
        )
        for one in shown
    ]
    function.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*positional, *keywords]
    )
    lines = [f"    {one.name}: {one.help}" for one in shown]
    text = inspect.cleandoc(function.__doc__ or "").split("\n\nOptions:\n")[0]
    function.__doc__ = text + "\n\nOptions:\n" + "\n".join(lines) + "\n"


def markdown() -> str:
    """The table of docs/options.md."""
    start, attach = declared(StartOptions), declared(AttachOptions)
    rows = [
        "| option | default | `start` | `attach` | `update` | what it does |",
        "|---|---|---|---|---|---|",
    ]
    for name, one in {**start, **attach}.items():
        default = "" if one.default is None or one.default == () else f"`{one.default!r}`"
        marks = ("yes" if name in calls else "" for calls in (start, attach, CHANGEABLE))
        rows.append(f"| `{name}` | {default} | {' | '.join(marks)} | {one.help} |")
    return "\n".join(rows) + "\n"


def _declared(name: str, hint: Any) -> Declared:
    kind, said = get_args(hint)
    return Declared(name, kind, said.default, said.help)


if __name__ == "__main__":
    print(markdown(), end="")
