"""The server: metrics beside the page, a token where others can come, one page for a port."""

import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.helpers.synthetic_surge import surge
from tidegate.errors import AskedWrongly
from tidegate.view.live.page import shared
from tidegate.view.live.page.address import PageAddress
from tidegate.view.live.page.server import Page
from tidegate.view.live.page.shared import check_page, place_on_page

PATIENCE_S = 120.0


class TokenAddress(PageAddress):
    """An address that asks for a token, although it is on loopback."""

    def token(self) -> str | None:
        return "secret"


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    running = Page(PageAddress("127.0.0.1", 0))
    feed = running.add("clicks")
    for record in surge():
        feed.add(record)
    yield running
    running.close()


@pytest.fixture(scope="module")
def guarded() -> Iterator[Page]:
    running = Page(TokenAddress("127.0.0.1", 0))
    running.add("clicks").add(surge()[0])
    yield running
    running.close()


def got(url: str, **headers: str) -> tuple[int, str]:
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def test_metrics_are_beside_the_page(page: Page) -> None:
    status, text = got(page.url + "metrics")
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert status == 200
    assert families["tidegate_target_seconds"].samples[0].labels == {"pipeline": "clicks"}


def test_openmetrics_is_negotiated(page: Page) -> None:
    _, text = got(page.url + "metrics", Accept="application/openmetrics-text; version=1.0.0")
    assert text.endswith("# EOF\n")


def test_the_page_names_no_other_host(page: Page) -> None:
    status, html = got(page.url)
    assert status == 200
    assert "<h1>clicks</h1>" in html and "viewport" in html
    assert "://" not in html.replace(page.url, "").replace("http://www.w3.org", "")


@pytest.mark.parametrize("plot", ["latency", "load", "cores", "backlog", "decisions", "cost"])
def test_each_plot_has_an_address(page: Page, plot: str) -> None:
    _, html = got(f"{page.url}?plot={plot}")
    assert html.count("<section") == 1 and f'<section id="{plot}"' in html


def test_what_does_not_exist_shows_everything(page: Page) -> None:
    status, html = got(f"{page.url}?plot=nothing&pipeline=%ff<script>")
    assert status == 200 and html.count("<section") == 10


def test_another_site_cannot_read_metrics_by_a_name_for_loopback(page: Page) -> None:
    status, _ = got(page.url + "metrics", Host="attacker.example:80")
    assert status == 403


def test_nothing_can_be_changed(page: Page) -> None:
    for path in ("", "metrics"):
        request = urllib.request.Request(page.url + path, data=b"cores=1", method="POST")
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=PATIENCE_S)
        assert refused.value.code == 405


def test_without_the_token_nothing_is_told(guarded: Page) -> None:
    bare = guarded.url.partition("?")[0]
    for path in ("", "metrics", "?plot=latency", "metrics?token=wrong"):
        status, text = got(bare + path)
        assert status == 403 and "clicks" not in text
    assert got(bare + "metrics", Authorization="Bearer secret")[0] == 200
    status, html = got(bare + "?token=secret")
    assert status == 200 and "clicks" in html
    assert got(bare, Cookie="tidegate-token=secret")[0] == 200


def test_a_page_does_not_repeat_its_token(guarded: Page) -> None:
    bare = guarded.url.partition("?")[0]
    assert "secret" not in got(bare, Cookie="tidegate-token=secret")[1]


def test_pipelines_with_the_same_port_share_a_page_until_the_last_leaves() -> None:
    first = place_on_page(0, "clicks")
    second = place_on_page(0, "clicks")
    try:
        assert first.page is second.page
        assert [feed.name for feed in first.page.feeds] == ["clicks", "clicks (2)"]
        check_page(0)
        _, html = got(first.page.url)
        assert "all pipelines" in html and html.count("<section") == 6
    finally:
        first.leave()
        assert got(second.page.url)[0] == 200
        second.leave()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(second.page.url, timeout=PATIENCE_S)
    assert shared._PAGES == {}


def test_a_port_of_another_process_is_refused_before_the_start(page: Page) -> None:
    with pytest.raises(AskedWrongly, match="cannot be listened on"):
        check_page(page.address.port)


def test_a_port_is_free_again_after_the_page(page: Page) -> None:
    one = Page(PageAddress("127.0.0.1", 0))
    one.close()
    again = Page(one.address)
    assert again.address == one.address
    again.close()
