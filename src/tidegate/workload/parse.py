"""Rate profiles as people write them: `constant:500`, `sine:200+-150/60`, `csv:rates.csv`."""

import math
import re
from collections.abc import Callable
from pathlib import Path

from tidegate.errors import AskedWrongly, nearest
from tidegate.workload.profile import Profile, constant, ramp, sine, spike, steps, uniform

_NUMBER = r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
_EXAMPLES = {
    "constant": "constant:500",
    "step": "step:100@0,400@30",
    "ramp": "ramp:100-400/60",
    "sine": "sine:200+-150/60",
    "spike": "spike:100,1000@20+5",
    "uniform": "uniform:1,25",
    "csv": "csv:rates.csv",
}
HELP = "constant:RATE, step:RATE@SECOND,..., ramp:FROM-TO/SECONDS, sine:MEAN+-SWING/SECONDS, "
HELP += "spike:BASE,PEAK@SECOND+SECONDS, uniform:LOW,HIGH (another rate every second) or "
HELP += "csv:FILE (header second,rate or minute,count)"


def parse_profile(text: str) -> Profile:
    """Parse a profile from its short form; a plain number is a constant rate."""
    kind, colon, rest = text.strip().partition(":")
    if not colon:
        kind, rest = "constant", kind
        if re.fullmatch(_NUMBER, rest) is None:
            raise AskedWrongly(
                f"'{text}' is not a rate profile; give one such as {_all_examples()}."
            )
    parse = _KINDS.get(kind)
    if parse is None:
        raise AskedWrongly(f"'{kind}' is not a kind of rate profile{nearest(kind, _KINDS)}")
    return parse(rest.strip())


def read_csv(path: Path) -> Profile:
    """Read rates from a file with the header `second,rate` or `minute,count`.

    The last rate holds for ever.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise AskedWrongly(f"the rates in '{path}' cannot be read: {reason}.") from error
    header = lines[0].replace(" ", "").lower() if lines else ""
    if header not in ("second,rate", "minute,count"):
        raise AskedWrongly(
            f"line 1 of '{path}' is '{header[:60]}'; "
            "the header must be second,rate or minute,count."
        )
    second, per_second = (60.0, 60.0) if header.startswith("minute") else (1.0, 1.0)
    changes: list[tuple[float, float]] = []
    for number, line in enumerate(lines[1:], start=2):
        if line.strip():
            at, rate = _csv_row(path, number, line)
            if changes and at * second <= changes[-1][0]:
                raise AskedWrongly(
                    f"line {number} of '{path}' goes back in time ('{line}'); sort the rows."
                )
            changes.append((at * second, rate / per_second))
    if not changes:
        raise AskedWrongly(f"'{path}' has a header and no rates; add rows below it.")
    begin = changes[0][0]
    return steps([(at - begin, rate) for at, rate in changes])


def _csv_row(path: Path, number: int, line: str) -> tuple[float, float]:
    cells = line.split(",")
    try:
        at, rate = (float(cell) for cell in cells)
    except ValueError:
        at = rate = math.nan
    if not (math.isfinite(at) and math.isfinite(rate) and at >= 0 and rate >= 0):
        raise AskedWrongly(
            f"line {number} of '{path}' is '{line[:60]}'; expected two numbers that are not "
            "negative, a time and a rate."
        )
    return at, rate


def _constant(rest: str) -> Profile:
    (rate,) = _numbers("constant", _NUMBER, rest)
    return constant(rate)


def _step(rest: str) -> Profile:
    body, slash, period = rest.partition("/")
    changes = []
    for part in body.split(","):
        rate, at = _numbers("step", rf"{_NUMBER}@{_NUMBER}", part.strip())
        changes.append((at, rate))
    if not slash:
        return steps(changes)
    (period_s,) = _numbers("step", _NUMBER, period)
    return steps(changes, period_s)


def _ramp(rest: str) -> Profile:
    return ramp(*_numbers("ramp", rf"{_NUMBER}-{_NUMBER}/{_NUMBER}", rest))


def _sine(rest: str) -> Profile:
    return sine(*_numbers("sine", rf"{_NUMBER}\+-{_NUMBER}/{_NUMBER}", rest))


def _spike(rest: str) -> Profile:
    return spike(*_numbers("spike", rf"{_NUMBER},{_NUMBER}@{_NUMBER}\+{_NUMBER}", rest))


def _uniform(rest: str) -> Profile:
    return uniform(*_numbers("uniform", rf"{_NUMBER},{_NUMBER}", rest))


def _csv(rest: str) -> Profile:
    return read_csv(Path(rest))


_KINDS: dict[str, Callable[[str], Profile]] = {
    "constant": _constant,
    "step": _step,
    "ramp": _ramp,
    "sine": _sine,
    "spike": _spike,
    "uniform": _uniform,
    "csv": _csv,
}


def _numbers(kind: str, pattern: str, text: str) -> list[float]:
    match = re.fullmatch(pattern, text)
    if match is None:
        raise AskedWrongly(
            f"'{text}' does not describe a {kind} profile; write it like {_EXAMPLES[kind]}."
        )
    return [float(group) for group in match.groups()]


def _all_examples() -> str:
    return ", ".join(_EXAMPLES.values())
