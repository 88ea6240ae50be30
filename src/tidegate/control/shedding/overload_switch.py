"""Whether there is an overload: on at once, off only after calm (hysteresis)."""

from tidegate.control.shedding.shedder import Look

CALM = 0.9
"""Off needs a latency without shedding below this share of the target."""


class Switch:
    """Sees every look; `on` is its answer to the last one."""

    def __init__(self, target_s: float) -> None:
        self._target_s = target_s
        self._calm_since_s: float | None = None
        self.on = False
        self.since_s = 0.0
        """When it went on."""

    def update(self, look: Look, aim_s: float | None = None) -> bool:
        """On when keeping all would miss the aim; off when, for a target's time, it would not.

        A single calm round proves little: a round is as long as the rows that it was left with.
        """
        aim_s = self._target_s if aim_s is None else aim_s
        unshed_s = look.outlook.latency_s(1.0)
        if not self.on:
            if unshed_s > aim_s:
                self.on, self.since_s = True, look.at_s
                self._calm_since_s = None
            return self.on
        late = look.latency_s is not None and look.latency_s > self._target_s
        if unshed_s > CALM * aim_s or late:
            self._calm_since_s = None
            return True
        if self._calm_since_s is None:
            self._calm_since_s = look.at_s
        self.on = look.at_s - self._calm_since_s < self._target_s
        return self.on
