"""The reference pages say what the code says; `make reference` makes them again."""

from functools import cache

import pytest

import tidegate
from tests.helpers import reference_pages
from tests.helpers.reference_pages import PAGES
from tests.unit.test_docs import known_commands

AGAIN = "the page is out of date: run `make reference`"
api_page, cli_page = cache(reference_pages.api_page), cache(reference_pages.cli_page)


def test_the_page_of_the_api_is_what_the_docstrings_say() -> None:
    assert (PAGES / "api.md").read_text(encoding="utf-8") == api_page(), AGAIN


def test_the_page_of_the_command_line_is_what_the_help_says() -> None:
    assert (PAGES / "cli.md").read_text(encoding="utf-8") == cli_page(), AGAIN


@pytest.mark.parametrize("name", tidegate.__all__)
def test_every_public_name_has_a_section(name: str) -> None:
    _, found, section = api_page().partition(f"\n### {name}\n")
    assert found, f"{name} has no section"
    assert section.partition("\n##")[0].strip(), f"{name} has no docstring"


def test_every_command_has_its_options() -> None:
    page = cli_page()
    for name, command in known_commands().items():
        section = page.partition(f"\n## tidegate {name}\n")[2].partition("\n## ")[0]
        missing = [one.opts[0] for one in command.params if f"`{one.opts[0]}" not in section]
        assert [option for option in missing if option.startswith("--")] == [], name
