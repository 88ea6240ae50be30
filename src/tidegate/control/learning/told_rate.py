"""A rate per tick from rows that become known batch by batch, with nothing lost or counted twice.

The rows of a micro-batch become known when it is over. They arrived earlier, over the time since
the batch before it began, and until the next batch is over nothing new is known. A tick therefore
holds the newest known rate, and what it tells is taken from an account of the rows that are known
and not told yet. Rates times intervals, added up over all ticks, equal the rows that were added
minus the balance of this account, and the balance goes to zero when the rows stop.

A batch that takes longer than usual leaves the account empty. The rate is then held on credit for
some seconds, because a load has not gone when a batch is slow. The credit is repaid from the rows
that become known next: while they come, a part of them is not told. If the load fell during the
slow batch, that takes a while, but a rate is never told as zero while rows come.
"""

from collections import deque

_CORRECTED = 0.25
"""What is told differs from the newest known rate by this share of it at most, while rows come."""
_DEEPLY = 2.0
"""Twice that, while the credit is more than `_CREDIT_S` of the rate: the load fell meanwhile."""
_CUSHION = 1.5
"""Rows for this many times the usual time between batches are no surplus: they even out jitter."""
_CREDIT_S = 10.0
"""Rows of at most so long are told before they are known."""
_STALLED, _STALLED_S = 2.0, 3.0
"""A batch that takes so many times as long as usual, and so long, may be the end of the rows."""
_TOLD_WITHIN_S = 5.0
"""Time within which a surplus is told; so is the rest of the account when nothing arrives."""
_NONE = 1e-9


class ToldRate:
    """The rate of something whose rows become known span by span."""

    def __init__(self, window_s: float = 1.0, corrected: float = _CORRECTED) -> None:
        self._corrected = corrected
        """What is told differs from the newest known rate by this share of it at most, mostly."""
        self._window_s = window_s
        """The rate that is held is that of the newest rows over at least so long."""
        self._spans: deque[tuple[float, float]] = deque()
        """Rows and seconds of the newest spans, the newest last."""
        self._rest_rate: float | None = None
        """The rate at which the account is told while nothing arrives; None while rows come."""
        self._until_s: float | None = None
        """All rows up to this time are known."""
        self._since_known_s = 0.0
        """Time told since rows last became known."""
        self._usual_s = 0.0
        """The time between the last two such moments."""
        self._gaps_s: deque[float] = deque(maxlen=4)
        """The last such times."""
        self.untold = 0.0
        """Rows that are known and not told yet; below zero: rows told on credit."""

    @property
    def known(self) -> float:
        """The newest known rate."""
        seconds = sum(span_s for _, span_s in self._spans)
        return sum(rows for rows, _ in self._spans) / seconds if seconds > 0.0 else 0.0

    def add(self, rows: float, since_s: float | None, until_s: float) -> None:
        """Rows that came between two moments; `since_s` None: it is not known over what time.

        A span that overlaps an earlier one is cut short. Time that no span covers had no rows.
        """
        span_s = 0.0
        if since_s is not None:
            if self._until_s is not None:
                self.nothing(since_s)
                since_s = max(since_s, self._until_s)
            span_s = max(until_s - since_s, 0.0)
            self._remember(rows, span_s)
        self._until_s = until_s if self._until_s is None else max(until_s, self._until_s)
        self.untold += rows
        if rows > 0.0:
            self._rest_rate = None
            if self._since_known_s > 0.0:
                self._usual_s, self._since_known_s = self._since_known_s, 0.0
                self._gaps_s.append(self._usual_s)
            elif self._usual_s <= 0.0:
                self._usual_s = span_s

    def nothing(self, until_s: float) -> None:
        """No row came between the last span and this moment."""
        if self._until_s is not None and until_s > self._until_s:
            self._remember(0.0, until_s - self._until_s)
            self._until_s = until_s

    def forget_times(self) -> None:
        """Forget when the last span ended, because the clock was set back."""
        self._until_s = None

    def tell(self, interval_s: float, *, quiet: bool = False) -> float:
        """The rate of a tick of this length; `quiet` if nothing arrives any more."""
        rate = self.known
        if quiet or (rate <= 0.0 and self._spans):
            told = self._rest(rate, interval_s)
        else:
            told = self._held(rate, interval_s)  # nothing before the first span
        self._since_known_s += interval_s
        self.untold -= told
        if abs(self.untold) < _NONE:
            self.untold = 0.0
        return told / interval_s

    def _held(self, rate: float, interval_s: float) -> float:
        """The rows of a tick at the newest known rate, corrected for what the account holds."""
        cushion_s = max(_CUSHION * self._usual_s - self._since_known_s, interval_s)
        surplus = self.untold - rate * cushion_s
        held = rate
        if surplus > 0.0:
            held += min(surplus / _TOLD_WITHIN_S, self._corrected * rate)
        elif self.untold < 0.0 and self._since_known_s < self._usual_s:
            # The rows that became known last have not repaid the credit.
            deep = self.untold < -_CREDIT_S * rate
            held -= (_DEEPLY if deep else 1.0) * self._corrected * rate
        if self._since_known_s <= max(_STALLED * max(self._gaps_s, default=0.0), _STALLED_S):
            return held * interval_s
        return max(min(held * interval_s, self.untold + _CREDIT_S * rate), 0.0)

    def _rest(self, rate: float, interval_s: float) -> float:
        """The rows of a tick while nothing arrives: the account is told until it is empty."""
        if self._rest_rate is None:
            self._rest_rate = max(self.untold, 0.0) / _TOLD_WITHIN_S
        return max(min(self.untold, max(rate, self._rest_rate) * interval_s), 0.0)

    def _remember(self, rows: float, span_s: float) -> None:
        self._spans.append((rows, span_s))
        seconds = sum(each_s for _, each_s in self._spans)
        while len(self._spans) > 1 and seconds - self._spans[0][1] >= self._window_s:
            seconds -= self._spans.popleft()[1]
