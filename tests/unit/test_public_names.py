"""What `import tidegate as tg` offers: every name loads from the module it is said to be in."""

import pytest

import tidegate as tg


@pytest.mark.parametrize("name", tg.__all__)
def test_every_public_name_loads(name: str) -> None:
    vars(tg).pop(name, None)  # another test may have loaded it already
    assert getattr(tg, name) is not None


def test_an_unknown_name_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="no attribute 'forecast_the_past'"):
        _ = tg.forecast_the_past
