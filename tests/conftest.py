"""Hypothesis draws anew on every run of ours, and the same cases every time in CI.

A change then turns CI red by what it does, not by the luck of the draw; new cases are found here.
No case has a deadline: on a busy machine it would fail by the clock, not by what it does.
"""

import gc
import os

from hypothesis import settings

# What is imported and collected stays until the end. The collector would look through all of it
# again and again, and find nothing.
gc.disable()

settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()
