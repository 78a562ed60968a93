"""Tests that the Python snippets on the pages compile, and that settings can be copied unchanged."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import pytest

from docs.sections.limits import _NOTICED, LimitUnexplained, interval_list, limit_list
from duetime.domain import limits
from duetime_cdk import Environment
from tests.docs.page_runner import IMPORTED_BY_SETTINGS
from tests.docs.pages import PAGES, name_of

if TYPE_CHECKING:
    from collections.abc import Iterator

BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def snippets() -> Iterator[tuple[str, str]]:
    """Return the position and the text of each Python block."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for block in BLOCK.finditer(text):
            yield f"{name_of(page)}:{text[: block.start()].count(chr(10)) + 1}", block[1]


SNIPPETS = dict(snippets())
SETTINGS = {where: text for where, text in SNIPPETS.items() if "replace(" in text}


@pytest.mark.parametrize("where", SNIPPETS)
def test_a_snippet_compiles(where: str) -> None:
    """Each snippet compiles without additions."""
    ast.parse(SNIPPETS[where])


@pytest.mark.parametrize("where", SNIPPETS)
def test_no_value_is_a_tuple_because_of_a_trailing_comma(where: str) -> None:
    """No snippet has a line `name = value,`, which is an argument copied out of its call and would be a tuple."""
    assignments = [node for node in ast.parse(SNIPPETS[where]).body if isinstance(node, ast.Assign)]
    values = [ast.get_source_segment(SNIPPETS[where], node.value) or "" for node in assignments]
    assert [value for value in values if value.rstrip().endswith(",")] == []


@pytest.mark.parametrize("where", SETTINGS)
def test_settings_are_accepted_as_they_are_shown(where: str) -> None:
    """Each setting is accepted by an environment, and lists of names contain names."""
    found: dict[str, object] = dict(IMPORTED_BY_SETTINGS)
    exec(SETTINGS[where], found)  # noqa: S102 - our own pages
    (made,) = [
        value
        for value in found.values()
        if isinstance(value, Environment) and value not in IMPORTED_BY_SETTINGS.values()
    ]
    assert all(isinstance(name, str) for name in (*made.aws_targets, *made.operators, *made.cors_origins))


def test_the_check_finds_settings_on_pages() -> None:
    """Pages that once had broken settings are among the checked pages."""
    assert len(SETTINGS) >= 4


def test_a_limit_without_explanation_is_not_described_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the code does not explain a limit, the page does not guess the meaning from its name, which misled readers."""
    assert "of one task" not in limit_list().replace("Tags of one task.", "")
    monkeypatch.setattr("docs.sections.limits.documented", lambda module: {"MAX_NODES": ""} if module is limits else {})
    with pytest.raises(LimitUnexplained):
        limit_list()


def test_every_interval_in_the_list_is_on_the_page() -> None:
    """If a name in the generator's list is not in the code, the test fails instead of leaving the name out."""
    shown = f"{limit_list()}\n{interval_list()}"
    assert [name for name in _NOTICED if f"* `{name}` (" not in shown] == []
