"""The script to give to spark-submit: `tidegate run`, in a process that spark-submit starts.

spark-submit --master yarn $(tidegate run --submit-path) --target 5s SCRIPT.py ARGS...
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    root = str(Path(__file__).resolve().parents[1])
    if not sys.flags.safe_path:
        # Python put the directory of this file there, whose modules are nobody's to import.
        sys.path[0] = root
    if root not in sys.path[1:]:
        sys.path.append(root)  # the program's directory takes the first place later
    sys.argv = ["tidegate", "run", *sys.argv[1:]]
    from tidegate.cli import main

    main()
