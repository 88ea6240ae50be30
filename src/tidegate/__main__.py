"""`python -m tidegate` is the same as `tidegate`."""

from tidegate.cli import main

main()
