"""Random identifiers of campaigns, ads, users and pages, and which campaign an ad belongs to.

They are the same in every process for the same seed, so a task can make the tables that it needs
without asking anybody.
"""

import uuid
from functools import lru_cache

import numpy as np
import pyarrow as pa

from tidegate.apps.campaigns.options import CampaignOptions
from tidegate.workload.counter import words

CAMPAIGNS, ADS, USERS, PAGES = 61, 62, 63, 64
"""Streams of random numbers, one for each kind of identifier."""


@lru_cache(maxsize=16)
def identifiers(kind: int, count: int, seed: int) -> pa.Array:
    """So many identifiers of a kind, as texts of 36 characters."""
    bits = words(np.arange(2 * count, dtype=np.int64), seed, kind)
    texts = [str(uuid.UUID(bytes=pair.tobytes(), version=4)) for pair in bits.reshape(-1, 2)]
    return pa.array(texts, pa.string())


@lru_cache(maxsize=2)
def campaign_of_ads(options: CampaignOptions, seed: int) -> pa.Table:
    """The table to join with: each ad and its campaign. Yahoo keeps it in Redis."""
    campaigns = identifiers(CAMPAIGNS, options.campaigns, seed)
    owner = np.arange(options.all_ads, dtype=np.int64) // options.ads
    return pa.table(
        {
            "ad": identifiers(ADS, options.all_ads, seed),
            "campaign": campaigns.take(pa.array(owner)),
        }
    )
