"""Numbers of cores in words: one core, and two cores."""


def cores_words(cores: int) -> str:
    """`1 core` or `4 cores`."""
    return "1 core" if cores == 1 else f"{cores:,d} cores"


def was(cores: int) -> str:
    """The verb that goes with so many cores."""
    return "was" if cores == 1 else "were"
