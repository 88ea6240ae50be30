"""What can be varied in the advertising pipeline; the defaults are Yahoo's."""

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.apps.option_values import check_range, options_of

MEANINGS = {
    "campaigns": "how many campaigns there are; default 100",
    "ads": "how many ads each campaign has; default 10",
    "window_s": "the length of a window in seconds of event time; default 10",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignOptions:
    """The campaigns, and the windows in which their views are counted."""

    campaigns: int = 100
    ads: int = 10
    """Ads of each campaign."""
    window_s: int = 10

    def __post_init__(self) -> None:
        check_range("campaigns", self.campaigns, 1, 100_000)
        check_range("ads", self.ads, 1, 1000)
        check_range("campaigns times ads", self.all_ads, 1, 1_000_000)
        check_range("window_s", self.window_s, 1, 86_400)

    @property
    def all_ads(self) -> int:
        """Ads of all campaigns."""
        return self.campaigns * self.ads


def campaign_options(extra: Mapping[str, str]) -> CampaignOptions:
    """The options from their texts."""
    return options_of(CampaignOptions, "campaigns", extra)
