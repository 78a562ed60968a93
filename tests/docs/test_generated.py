from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from docs.generate import SECTIONS, SectionUnknown, filled, generated_in, generated_pages
from docs.sections import api, limits
from docs.sections.markdown import table
from docs.sections.states import picture, reached
from duetime.contract.openapi.document import OPERATIONS, document
from duetime.domain.tasks.states import LEGAL, Move, Rule, State
from tests.docs.pages import name_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


BOUNDS = frozenset({"maximum", "minimum", "maxItems", "maxProperties"})
DEFAULTS = frozenset({"description"})
"""Defaults are in descriptions and not in schemas, because generated clients would send them."""


@pytest.mark.parametrize("page", generated_pages(), ids=name_of)
def test_generated_sections_equal_the_code(page: Path) -> None:
    """Generating the sections again changes nothing; run `python docs/generate.py` if this test fails."""
    text = page.read_text(encoding="utf-8")
    assert filled(text) == text


def test_every_generated_section_is_on_exactly_one_page() -> None:
    """Every generated section is on exactly one page."""
    shown = [name for page in generated_pages() for name in generated_in(page.read_text(encoding="utf-8"))]
    assert sorted(shown) == sorted(SECTIONS)


def test_a_changed_section_is_replaced() -> None:
    """The text between the markers is replaced, and the rest of the page is unchanged."""
    page = "before\n<!-- generated: changeable -->\nold\n<!-- end -->\nafter\n"
    new = filled(page)
    assert new.startswith("before\n")
    assert new.endswith("<!-- end -->\nafter\n")
    assert "old" not in new
    assert "`scheduled`" in new


def test_a_misspelled_marker_is_an_error() -> None:
    """A misspelled marker is an error, so that no section becomes outdated unnoticed."""
    with pytest.raises(SectionUnknown, match="limit"):
        filled("<!-- generated: limit -->\n<!-- end -->")


def test_a_new_state_transition_changes_the_diagram(monkeypatch: pytest.MonkeyPatch) -> None:
    """The state diagram depends only on the table of state transitions."""
    before = picture()
    monkeypatch.setitem(LEGAL, Move.REPLACE, Rule(frozenset({State.SCHEDULED}), State.BLOCKED, "held"))
    assert "scheduled --> blocked: replace" not in before
    assert "scheduled --> blocked: replace" in picture()
    assert State.BLOCKED in reached()


def test_a_cell_cannot_break_its_table() -> None:
    """A vertical bar or a line break in a string stays within its cell."""
    assert table(("a",), [("x|y\nz",)]).splitlines()[2] == "| x\\|y z |"


def test_a_foreign_field_is_listed_with_its_equivalent() -> None:
    """A foreign field is listed with its equivalent and the equivalent's object, or with advice instead."""
    names = api.foreign_names()
    assert re.search(r"^\* `retry.max_attempts`: .*Airflow `retries`;", names, re.MULTILINE)
    assert "* `lock` of the task, or a switch: Airflow `max_active_tasks`, `pool`, `pool_slots`; QStash " in names
    assert "raise `Unretriable` in the handler: Temporal " in names


def test_a_call_has_its_summary_if_its_path_is_unclear() -> None:
    """A path such as `POST /pause` is shown without a summary, and closing a group is shown with its summary."""
    calls = api.calls()
    assert "`POST /pause`, " in calls
    assert "`PUT` (close a group)" in calls


def test_the_table_of_calls_has_every_call() -> None:
    """Each API call is listed in the row for its resource."""
    rows = re.findall(r"^\* `([^`]+)`: (.*)$", api.calls(), re.MULTILINE)
    shown = {
        f"{method} {resource}{below}"
        for resource, calls in rows
        for method, below in re.findall(r"`([A-Z]+) ?([^`]*)`", calls)
    }
    assert shown == {one.route for one in OPERATIONS}


def _bounds(part: object) -> Iterator[float]:
    if isinstance(part, dict):
        for name, each in part.items():
            if name in BOUNDS and isinstance(each, int | float):
                yield each
            elif name in DEFAULTS:
                yield from map(float, re.findall(r"Default: ([0-9.]*[0-9])", str(each)))
            else:
                yield from _bounds(each)
    elif isinstance(part, list):
        for each in part:
            yield from _bounds(each)


def test_a_limit_missing_from_the_page_is_in_the_document() -> None:
    """Each numeric limit is on the page about limits, or with its field in the document."""
    known = {*_bounds(document())}
    omitted = {
        name: getattr(module, name) for module in limits._LIMITS for name in dir(module) if name in limits._BOUNDS
    }
    assert omitted.keys() == limits._BOUNDS
    assert [name for name, value in omitted.items() if value not in known] == []
