"""Runs a Python file as `python FILE ARGS...` would, inside this process.

`runpy` would do, but for its end: it takes the module `__main__` away as soon as the file has been
executed, while threads of the program, its `foreachBatch` functions and its functions at exit may
still need it.
"""

import builtins
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType, TracebackType


def run_script(script: Path, arguments: tuple[str, ...]) -> None:
    """Execute the file as `__main__`, with its own `sys.argv` and its directory on `sys.path`."""
    sys.argv = [str(script), *arguments]
    if not sys.flags.safe_path:
        # As Python does: the place of the running script, which is ours, gets the program's.
        sys.path[0] = str(script.resolve().parent)
    file = str(script.absolute())
    main = ModuleType("__main__")
    main.__dict__.update(
        __file__=file,
        __builtins__=builtins,
        __loader__=SourceFileLoader("__main__", file),
        __annotations__={},
        __cached__=None,
    )
    sys.modules["__main__"] = main
    exec(compile(script.read_bytes(), file, "exec", dont_inherit=True), main.__dict__)


def own_frames(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without our frames at its top, as Python would have printed it.

    An error of the compiler has no frame of the program at all.
    """
    while trace is not None and trace.tb_frame.f_globals.get("__name__") != "__main__":
        trace = trace.tb_next
    return trace
