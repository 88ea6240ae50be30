"""The words and hashtags of tweets as strings: made of syllables, one string for each number."""

from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

WORDS = 2_000
"""Different words that are no hashtags."""
FORMS = 4
"""In how many ways a hashtag is written. People use capitals, and put a comma behind it."""
_SYLLABLES = pa.array([f"{first}{second}" for first in "bdfgklmnprstvz" for second in "aeiou"])


@lru_cache(maxsize=4)
def spellings(hashtags: int) -> pa.Array:
    """All strings: first the words, then `FORMS` spellings of each hashtag."""
    plain = pc.binary_join_element_wise("#", hashtag_names(hashtags), "")
    capital = pc.binary_join_element_wise("#", pc.utf8_capitalize(hashtag_names(hashtags)), "")
    forms = [plain, plain, capital, pc.binary_join_element_wise(plain, ",", "")]
    spelled = pa.concat_arrays(forms).take(
        pa.array(np.arange(FORMS * hashtags).reshape(FORMS, hashtags).T.ravel())
    )
    return pa.concat_arrays([_named(WORDS), spelled])


@lru_cache(maxsize=4)
def hashtag_names(hashtags: int) -> pa.Array:
    """The hashtags without their sign, in lower case: what they are counted by."""
    return _named(hashtags)


def _named(count: int) -> pa.Array:
    """Different strings for the numbers below `count`: their digits as syllables."""
    numbers, base = np.arange(count), len(_SYLLABLES)
    digits = 1
    while base**digits < count:
        digits += 1
    parts = [_SYLLABLES.take(pa.array(numbers // base**place % base)) for place in range(digits)]
    return pc.binary_join_element_wise(*parts, "")
