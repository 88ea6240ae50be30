"""The extractor: from texts of tweets to one row for each hashtag in them."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.pipelines.derived import Derived

HASHTAG = "hashtag string, at timestamp"
PUNCTUATION = ".,:;!?"
"""What may stand behind a hashtag and does not belong to it."""
_NAME = rf"(?s)^#(?P<name>.*?)[{PUNCTUATION}]*$"


def hashtags(rows: pa.Table) -> Derived:
    """The hashtags of each tweet in lower case, with the time of the tweet."""
    parts = pc.utf8_split_whitespace(rows["text"].combine_chunks())
    strings, parents = pc.list_flatten(parts), pc.list_parent_indices(parts)
    tagged = pc.starts_with(strings, "#")
    found = pc.extract_regex(strings.filter(tagged), _NAME)
    names = pc.utf8_lower(pc.struct_field(found, "name"))
    some = pc.not_equal(names, "")
    of = parents.filter(tagged).filter(some)
    made = pa.table({"hashtag": names.filter(some), "at": rows["at"].take(of)})
    return Derived(made, of.to_numpy().astype(np.int64))
