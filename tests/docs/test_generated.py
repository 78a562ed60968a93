from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from docs.generate import SECTIONS, SectionUnknown, filled, generated_in, generated_pages
from docs.sections import api
from docs.sections.markdown import table
from docs.sections.states import picture, reached
from duetime.domain.tasks.states import LEGAL, Move, Rule, State
from tests.docs.pages import name_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("page", generated_pages(), ids=name_of)
def test_a_page_says_what_the_code_says(page: Path) -> None:
    """Writing the generated sections anew changes nothing: run `python docs/generate.py` when this fails."""
    text = page.read_text(encoding="utf-8")
    assert filled(text) == text


def test_every_generated_section_stands_on_exactly_one_page() -> None:
    """A fact that is generated is shown, and shown once."""
    shown = [name for page in generated_pages() for name in generated_in(page.read_text(encoding="utf-8"))]
    assert sorted(shown) == sorted(SECTIONS)


def test_a_section_that_differs_is_written_anew() -> None:
    """What stood between the markers is gone, what stood around them stays."""
    page = "before\n<!-- generated: changeable -->\nold\n<!-- end -->\nafter\n"
    new = filled(page)
    assert new.startswith("before\n")
    assert new.endswith("<!-- end -->\nafter\n")
    assert "old" not in new
    assert "`scheduled`" in new


def test_a_marker_of_another_name_is_refused() -> None:
    """A typing error in a marker does not leave an old section standing."""
    with pytest.raises(SectionUnknown, match="limit"):
        filled("<!-- generated: limit -->\n<!-- end -->")


def test_a_new_move_changes_the_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    """The picture is drawn from the table of moves, and from nothing else."""
    before = picture()
    monkeypatch.setitem(LEGAL, Move.REPLACE, Rule(frozenset({State.SCHEDULED}), State.BLOCKED, "held"))
    assert "scheduled --> blocked: replace" not in before
    assert "scheduled --> blocked: replace" in picture()
    assert State.BLOCKED in reached()


def test_a_cell_cannot_break_its_table() -> None:
    """A vertical bar or a line break in a text stays within its cell."""
    assert table(("a",), [("x|y\nz",)]).splitlines()[2] == "| x\\|y z |"


def test_a_foreign_name_is_shown_with_the_field_that_it_is_here() -> None:
    """With the object that has the field; without a field, by the sentence that says what to do instead."""
    names = api.foreign_names("Celery")
    assert "| `max_retries` | `retry.max_attempts` |" in names
    assert "| `args`, `kwargs` | `payload` |" in names
    assert "| `chain`, `chord`, `group_id` | `depends_on` of a node of a topology |" in names
    assert "raise `Unretriable` in the handler" in names


def test_fields_that_mean_the_same_are_explained_once() -> None:
    """A node has the fields of a task: they are named, and its own are explained."""
    schemas = api.request_fields("TopologyNodeInput", besides="TaskCreate")
    first, _, own = schemas.partition("\n")
    assert "`retry`" in first
    assert "* `depends_on` (" in own
    assert "* `retry` (" not in own
