"""The paper's setting (4.1, 4.2): six machines, four on standby, a load that rises by the minute.

A machine of the paper is a core here, and a core is a task that waits. The paper draws samples that
it took every 60 s; a minute is a few seconds here, because a micro-batch settles in seconds.
"""

from dataclasses import dataclass

from tidegate.models.flow.limiting import LIMITING
from tidegate.workload.profile import Profile, steps

CORES, STANDBY = 6, 4
MOST = CORES + STANDBY
MASTER = f"local[{MOST + 2},4]"
"""A core for each task, and two that read the source. A task that fails because the machine is busy
is tried again, as on a cluster."""
MINUTE_S, QUICK_MINUTE_S = 5.0, 2.0
MINUTES = 16
SLOW_MINUTES, RISES_UNTIL = 1, 8
"""In minutes: until the first one the load is small, then it rises, and from the second one on it
stays at its peak."""
PEAK_FROM = 11
"""From this minute on a run is judged by its throughput. What came meanwhile has settled: close to
its capacity, the length of micro-batches takes some minutes to do so."""
SLOW = 0.3
"""The load of the first minutes, as a share of what six cores can carry."""
TARGET_S = 8.0
"""The latency constraint. The paper prints none; 900 ms are too much for it. A micro-batch has a
fixed cost, and at nine tenths of its capacity a pipeline needs several times that."""
PAPERS_BREAK_S = 3.0
MOST_GAIN = MOST / CORES
"""What four machines beside six can bring if all of them are always busy. The paper prints no gain:
it draws its throughputs."""
LEAST_GAIN = LIMITING * MOST_GAIN
"""What a gain is to be at least, with the latency constraint held. By eq. 11 a cut that is filled
to 85 % is a bottleneck already, so the paper's strategy does not mean to fill machines further."""


@dataclass(frozen=True, slots=True)
class RisingLoad:
    """Rows per second over the minutes of the paper."""

    capacity: float
    """What six cores can carry if they are always busy and their rows are evenly spread."""
    peak: float
    """The load at the end, as a share of that."""
    minute_s: float

    @property
    def seconds(self) -> float:
        """How long rows arrive for."""
        return MINUTES * self.minute_s

    def rate(self, minute: float) -> float:
        """Rows per second at a minute."""
        risen = (minute - SLOW_MINUTES) / (RISES_UNTIL - SLOW_MINUTES)
        share = SLOW + (self.peak - SLOW) * min(max(risen, 0.0), 1.0)
        return share * self.capacity

    def profile(self) -> Profile:
        """The load in four steps a minute."""
        quarters = [quarter / 4 for quarter in range(4 * RISES_UNTIL + 1)]
        return steps([(at * self.minute_s, self.rate(at)) for at in quarters])
