"""Video logo detection as `tidegate app vld` (DRS V-A.1). OpenCV is imported when it is built."""

from pathlib import Path

from pyspark.sql import SparkSession

from tidegate.apps.application import Application, BuiltApplication, Settings

OPERATORS = ("extract", "match", "aggregate")
MOST_TASKS = 24
"""Of each operator."""


def _build(spark: SparkSession, settings: Settings, directory: Path) -> BuiltApplication:
    from tidegate.apps.vld.flow import vld_flow

    return vld_flow(spark, settings, directory, APPLICATION.stretched_s, MOST_TASKS)


APPLICATION = Application(
    name="vld",
    paper="DRS V-A.1",
    about="which of 16 logos are in each frame of a video, by SIFT features",
    rate="uniform:1,25",
    target="10 seconds",
    cores=(3, 22),
    operators=OPERATORS,
    stretched_s={"extract": 1 / 1.6, "match": 1 / 1.45, "aggregate": 1 / 40},
    most_tasks=lambda _: dict.fromkeys(OPERATORS, MOST_TASKS),
    build=_build,
    needs=("cv2",),
)
