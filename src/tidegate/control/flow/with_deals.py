"""A policy around another one that deals the rows of maps by the speed of their executors.

It takes no core, so it is done whatever the inner policy decides. A map whose tasks change with the
same decision is left: its new tasks have no places yet.
"""

from dataclasses import replace

from tidegate.control.constraints import Constraints
from tidegate.control.decision import Decision, deal_words
from tidegate.control.flow.dealer import Dealer
from tidegate.control.measurement import Measurement
from tidegate.control.policy import Policy
from tidegate.control.wrapper import Wrapper


class WithDeals(Wrapper):
    """The inner policy, with deals."""

    def __init__(self, inner: Policy) -> None:
        super().__init__(inner)
        self._dealer = Dealer()

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        """The inner policy's decision, with new shares for maps that need them."""
        decision = self.inner.decide(measurement, constraints)
        deals = {
            name: shares
            for name, shares in self._dealer.deals(measurement).items()
            if name not in decision.tasks
        }
        if not deals:
            return decision
        said = [f"dealing the rows of `{n}` {deal_words(one)}" for n, one in deals.items()]
        deal = {**deals, **decision.deal}
        return replace(decision, reason="; ".join([decision.reason, *said]), deal=deal)
