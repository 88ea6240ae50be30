"""Hypothesis draws anew on every run of ours, and the same cases every time in CI.

A change then turns CI red by what it does, not by the luck of the draw; new cases are found here.
No case has a deadline: on a busy machine it would fail by the clock, not by what it does.
"""

import os

from hypothesis import settings

settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")
