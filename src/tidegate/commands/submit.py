"""The script to give to spark-submit: `tidegate run`, in a process that spark-submit starts.

spark-submit --master yarn $(tidegate run --submit-path) --target 5s SCRIPT.py ARGS...
"""

import importlib.util
import sys
from pathlib import Path

if __name__ == "__main__":
    # Python puts the directory of this file first, whose modules are nobody's to import.
    sys.path[0] = str(Path.cwd())
    if importlib.util.find_spec("tidegate") is None:
        sys.path.append(str(Path(__file__).resolve().parents[2]))
    sys.argv = ["tidegate", "run", *sys.argv[1:]]
    from tidegate.cli import main

    main()
