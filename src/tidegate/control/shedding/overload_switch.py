"""Detects overload: switches on at once, and off only after a calm period (hysteresis)."""

from tidegate.control.shedding.shedder import Look

CALM = 0.9
"""To switch off, the latency expected without shedding must be below this share of the aim."""


class Switch:
    """Follows the load from look to look; `on` says whether there is an overload."""

    def __init__(self, target_s: float) -> None:
        self._target_s = target_s
        self._calm_since_s: float | None = None
        self.on = False
        self.since_s = 0.0
        """When it was last switched on."""

    def update(self, look: Look, aim_s: float | None = None) -> bool:
        """Switch on if keeping all rows would miss the aim; off after a calm period.

        It is calm while the latency expected without shedding is well within the aim and the
        measured one within the target. The calm must last as long as the target. A single calm
        round proves little: it may be short only because rows were shed before it.
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
