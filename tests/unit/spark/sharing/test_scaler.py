"""Pipelines and an attachment do not both scale one application."""

import pytest

from tidegate.errors import AskedWrongly
from tidegate.spark.sharing.scaler import ATTACHMENT, PIPELINES, scale


def test_the_second_kind_is_refused_while_the_first_works():
    works = [True]
    scale("app", PIPELINES, lambda: works[0])
    scale("app", PIPELINES, lambda: works[0])
    scale("other", ATTACHMENT, lambda: True)
    with pytest.raises(AskedWrongly, match="are scaled by pipelines with a target already"):
        scale("app", ATTACHMENT, lambda: True)
    works[0] = False
    scale("app", ATTACHMENT, lambda: True)
    with pytest.raises(AskedWrongly, match=r"are scaled by tg\.attach already"):
        scale("app", PIPELINES, lambda: True)
