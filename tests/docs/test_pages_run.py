"""Runs the pages' blocks with the deployed functions in virtual time (`page_runner.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.docs.page_runner import PageBroken, PageRunner, blocks_of, commands_in
from tests.docs.pages import PAGES, ROOT, name_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ELSEWHERE = {
    "CONTRIBUTING.md": "its commands are those of the checkout",
    "docs/how-to/test-your-tasks.md": "test_testing_guide runs it, in a project of its own",
    "docs/how-to/use-the-python-sdk.md": "test_sdk_guide runs it, with an account of its own",
    "docs/how-to/verify-a-signed-call.md": "test_verify_example runs it, with signed calls",
}
"""Pages that another test runs or that no test runs, each with the reason."""
SLOW = {
    "docs/how-to/start-a-project.md": "synthesises a stack, with the layers that it needs",
}
"""Pages that take long, each with the reason."""
_SHOWN = {"python", "bash", "console", "json"}
RUN = [
    page
    for page in PAGES
    if name_of(page) not in ELSEWHERE
    and any(block.language in _SHOWN for block in blocks_of(page.read_text(encoding="utf-8")))
]


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PageRunner]:
    """Return a runner with one account and one folder."""
    made = PageRunner(tmp_path, monkeypatch)
    yield made
    made.close()


@pytest.mark.parametrize("page", [page for page in RUN if name_of(page) not in SLOW], ids=name_of)
def test_commands_snippets_and_bodies_on_a_page_work(runner: PageRunner, page: Path) -> None:
    """On each page, each command succeeds or fails as shown, each snippet runs, and each body is accepted."""
    runner.run(page.read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("page", SLOW)
def test_commands_snippets_and_bodies_on_a_slow_page_work(runner: PageRunner, page: str) -> None:
    """On slow pages, too, each command succeeds or fails as shown, each snippet runs, and each body is accepted."""
    runner.run((ROOT / page).read_text(encoding="utf-8"))


def test_the_test_of_pages_finds_the_pages() -> None:
    """The tests in this module find the pages that they run."""
    assert len(RUN) > 10


@pytest.mark.parametrize(
    ("page", "line"),
    [
        ("```python\nclient.tasks.get('nothing')\n```\n", 1),
        ("\n```bash\nduetime tasks get nothing\n```\n", 2),
        ("```json\n{'a': 1}\n```\n", 1),
        ('<!-- send: POST /v1/tasks -->\n```json\n{"typo": "report"}\n```\n', 1),
        ("```bash\nrm -r /\n```\n", 1),
        ("```bash\ncurl $DUETIME_URL/v1/tasks/nothing\n```\n", 1),
        ("```console\n$ curl -i $DUETIME_URL/v1/tasks\nHTTP/1.1 404 Not Found\n```\n", 1),
        ("\n<!-- before: duetime tasks get nothing -->\n", 2),
    ],
)
def test_an_example_that_does_not_work_fails_the_test(runner: PageRunner, page: str, line: int) -> None:
    """A failing snippet, a refused command or body, invalid JSON or an unmarked program fails the test of a page."""
    with pytest.raises(PageBroken, match=f"line {line}:"):
        runner.run(page)


def test_the_other_lines_of_a_block_with_prompts_are_output() -> None:
    """Only lines after a prompt are commands; a backslash or a quotation mark continues a command."""
    (found,) = commands_in("$ duetime tasks \\\n  get ID\nerror: there is no task\n")
    assert found.words == ("duetime", "tasks", "get", "ID")
    assert found.fails
    (plain,) = commands_in("duetime tasks create a --payload '{\n}'  # a comment\n# another\n")
    assert plain.words[-1] == "{\n}"
    assert not plain.fails
