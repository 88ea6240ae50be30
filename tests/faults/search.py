"""Searches seeds for a defect, and makes the course of the first one found as short as it can."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tests.faults.world import Course, Defect, World


def defect_of(course: Course) -> str | None:
    """What goes wrong on this course, with the trace of all operations; None if nothing does."""
    try:
        World(course).run()
    except Defect as error:
        return str(error)
    return None


def first_defect(courses: Iterable[Course]) -> Course | None:
    """The first course that shows a defect."""
    return next((course for course in courses if defect_of(course) is not None), None)


def shrunk(course: Course) -> Course:
    """A course that still shows a defect, with fewer batches, drivers, faults and kinds of them."""
    while True:
        smaller = next((one for one in _smaller(course) if defect_of(one) is not None), None)
        if smaller is None:
            return course
        course = smaller


def _smaller(course: Course) -> Iterator[Course]:
    """Courses that are one step simpler. Each is tried with a few seeds, since any change of a
    course changes the chances in it."""
    simpler = []
    if course.cut:
        simpler.append(replace(course, cut=False))
    if course.versions != 3:
        simpler.append(replace(course, versions=3))
    if course.resharded:
        simpler.append(replace(course, resharded=False))
    if course.saved:
        simpler.append(replace(course, saved=False))
    if course.evolves:
        simpler.append(replace(course, evolves=0))
    for name in ("batches", "drivers", "faults"):
        if getattr(course, name) > 1:
            simpler.append(replace(course, **{name: getattr(course, name) - 1}))
    for kind in sorted(course.kinds - {"wait"}):
        simpler.append(replace(course, kinds=course.kinds - {kind}))
    for one in simpler:
        for seed in (one.seed, *range(20)):
            yield replace(one, seed=seed)
