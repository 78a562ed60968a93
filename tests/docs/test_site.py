"""Tests that the documentation site has every page, links only to itself, and loads nothing from elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING

import pytest

from docs.site import build, llms, operations
from docs.site.navigation import DOCS, OUTSIDE, ROOT, Page, name_of, pages
from duetime.contract.openapi.document import OPERATIONS
from tests.console.conftest import chromium

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Request

_LINK = re.compile(r"\]\(([^)#]+\.md)[)#]")


def test_every_page_is_in_the_navigation() -> None:
    """Every page below `docs/` is in the navigation, and every page in the navigation exists."""
    build.check_navigation()


def test_a_page_missing_from_the_navigation_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The navigation check finds a page that is not in the navigation, and an entry without a page."""
    known = pages()
    monkeypatch.setattr(build, "pages", lambda: known[1:])
    with pytest.raises(build.PagesNotListed, match=re.escape(known[0].name)):
        build.check_navigation()
    monkeypatch.setattr(build, "pages", lambda: [*known, Page("", "nowhere.md", DOCS / "nowhere.md")])
    with pytest.raises(build.PagesNotListed, match=r"nowhere\.md"):
        build.check_navigation()


def test_the_index_links_to_every_page() -> None:
    """A reader of the checkout can find each page from `docs/README.md`."""
    index = DOCS / "README.md"
    linked = {(DOCS / target).resolve() for target in _LINK.findall(index.read_text(encoding="utf-8"))}
    expected = {page.source for page in pages()} - {index} - {ROOT / name for name in OUTSIDE}
    assert sorted(name_of(page) or "" for page in expected - linked) == []


def test_the_list_for_programs_is_up_to_date() -> None:
    """`docs/llms.txt` equals the navigation; run `python docs/generate.py` if this test fails."""
    assert llms.FILE.read_text(encoding="utf-8") == llms.text()


def test_every_page_has_a_title() -> None:
    """The list for programs shows each page's title and, for most pages, the first sentence."""
    known = pages()
    assert [page.name for page in known if page.title == page.name] == []
    assert sum(page.summary.endswith((".", "?")) for page in known) > 0.9 * len(known)


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("[a](../reference/api.md#tasks)", "[a](../reference/api.md#tasks)"),
        ("[a](../../client/README.md)", "[a](../client.md)"),
        ("[a](../README.md#how-to)", "[a](../index.md#how-to)"),
        ("[a](../../examples/handlers/README.md)", "a"),
        ("[a](https://example.org/x.md)", "[a](https://example.org/x.md)"),
        ("[a](#here)", "[a](#here)"),
        (
            "```text\n[a](../../examples/handlers/README.md)\n```\n",
            "```text\n[a](../../examples/handlers/README.md)\n```\n",
        ),
    ],
)
def test_links_on_the_site_lead_to_pages_of_the_site(link: str, expected: str) -> None:
    """A link that leaves the site becomes text, and fenced blocks are not changed."""
    assert build.staged(link, DOCS / "how-to" / "deploy.md") == expected


def test_a_page_of_the_site_links_to_pages_only_on_the_site() -> None:
    """The page with all operations exists only on the site, so the checkout has a comment in place of the link."""
    source = DOCS / "reference" / "api.md"
    assert "(operations.md)" not in source.read_text(encoding="utf-8")
    assert "(operations.md)" in build.staged(source.read_text(encoding="utf-8"), source)


def test_the_page_of_operations_has_every_operation_and_model() -> None:
    """A reader of the site finds each operation by its summary, and each model to which a field links."""
    page = operations.text()
    headings = set(re.findall(r"^### (.+)$", page, re.MULTILINE))
    assert {one.summary for one in OPERATIONS} <= headings
    assert set(re.findall(r"\]\(#(\w+)\)", page)) <= {each.lower() for each in headings}


@pytest.fixture(scope="module")
def site() -> None:
    """Build the site."""
    if not build.GENERATOR.exists():
        pytest.skip("the generator is not installed: `make docs-site`")
    done = subprocess.run(
        [sys.executable, "-m", "docs.site.build"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("site")
def test_the_site_loads_nothing_from_elsewhere() -> None:
    """No page loads a script, a style, a font or a picture from another address."""
    for page in build.SITE.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert re.findall(r'(?:src|<link[^>]+href)="(?:https?:)?//[^"]*"', text) == [], page.name


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start headless Chromium."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only these tests need it

    path = chromium()
    if path is None:
        pytest.skip("no Chromium")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()


def _note(requested: list[str], request: Request) -> None:
    requested.append(request.url)


@pytest.mark.slow
@pytest.mark.usefixtures("site")
def test_every_diagram_is_drawn(browser: Browser) -> None:
    """Mermaid renders every diagram on the site, and no request leaves the machine."""
    with_diagrams = [page for page in pages() if "```mermaid" in page.source.read_text(encoding="utf-8")]
    assert with_diagrams
    for page in with_diagrams:
        requested: list[str] = []
        opened = browser.new_page()
        opened.on("request", partial(_note, requested))
        opened.goto((build.SITE / page.name).with_suffix(".html").as_uri())
        expected = page.source.read_text(encoding="utf-8").count("```mermaid")
        opened.wait_for_function(
            f"document.querySelectorAll('.mermaid:not(pre)').length === {expected}", timeout=60_000
        )
        assert [url for url in requested if not url.startswith(("file:", "data:", "blob:"))] == []
        # The diagram is in a closed shadow root, so its height shows whether it was drawn.
        heights = opened.eval_on_selector_all(".mermaid:not(pre)", "all => all.map(one => one.offsetHeight)")
        assert min(heights) > 80, page.name
        opened.close()
