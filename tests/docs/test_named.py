from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

from duetime.canary_task import TYPE
from duetime.contract.http.problems import KINDS
from duetime.contract.openapi.document import OPERATIONS
from duetime.domain.change_events import EventKind
from duetime.domain.tasks.notices import CALLBACK_TYPE
from duetime_testing import Duetime
from tests.docs.pages import PAGES, REFERENCE, ROOT, all_tests, name_of

if TYPE_CHECKING:
    from pathlib import Path

_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_TEST = re.compile(r"\btest_[a-z0-9_]+\b(?!\.py)")
_PATH = re.compile(r"`((?:tests|testing|infra|functions|layers|local|examples|client|docs|bench)/[\w./-]+\.\w+)`")
_MODULE = re.compile(r"`(duetime(?:\.\w+)+)`")
_PROBLEM = re.compile(r'"urn:duetime:problem:(\w+)", *"title": *"([^"]+)"')
NOT_PYTHON = {TYPE, CALLBACK_TYPE, "duetime.task.attempt", *EventKind, *(f"duetime.{name}" for name in dir(Duetime))}
"""Names that look like parts of the package but are task types, a span attribute, event kinds or parts of a kit."""
_TARGET = re.compile(r"\bmake ([a-z-]+)")
_PARAMETER = re.compile(r"\{\w+\}")
_ROUTE = re.compile(r"`((?:GET|POST|PUT|PATCH|DELETE) /v1[^`?\s]*)")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_named_test_exists(page: Path) -> None:
    """Every test that a page names exists."""
    # Fenced blocks are examples, which `test_testing_guide.py` runs.
    named = set(_TEST.findall(_FENCE.sub("", page.read_text(encoding="utf-8"))))
    missing = sorted(named - all_tests())
    assert missing == []


def test_every_threat_names_a_test() -> None:
    """Every threat on the security page names a test that covers it."""
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8").partition("## Threats\n")[2]
    rows = [line for line in page.splitlines() if line.startswith("* ")]
    assert len(rows) > 30
    assert [row for row in rows if not _TEST.search(row.rpartition(" (")[2])] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_named_file_exists(page: Path) -> None:
    """Every file that a page names by its path is in the checkout."""
    named = _PATH.findall(_FENCE.sub("", page.read_text(encoding="utf-8")))
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_named_part_of_the_package_exists(page: Path) -> None:
    """Every module, class or function that a page names by its full name can be imported."""
    named = _MODULE.findall(page.read_text(encoding="utf-8"))
    assert [name for name in named if name not in NOT_PYTHON and not _exists(name)] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_named_make_target_exists(page: Path) -> None:
    """Every `make` target on a page exists in the Makefile."""
    code = re.findall(r"```.*?```|`[^`\n]+`", page.read_text(encoding="utf-8"), re.DOTALL)
    named = {target for text in code for target in _TARGET.findall(text)}
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert named <= known


@pytest.mark.parametrize("name", ["api.md", "first-designs.md"])
def test_every_named_route_exists_in_the_api(name: str) -> None:
    """The routes on the pages about the API and the designs exist."""
    page = _FENCE.sub("", (REFERENCE / name).read_text(encoding="utf-8"))
    routes = {_PARAMETER.sub("{}", one.route) for one in OPERATIONS}
    assert [each for each in _ROUTE.findall(page) if _PARAMETER.sub("{}", each) not in routes] == []


def test_problems_are_shown_with_their_titles() -> None:
    """The rejections on a page have the titles of problems that the API returns."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    shown = set(_PROBLEM.findall(text))
    assert len(shown) >= 2
    assert shown <= {(kind.code.value, kind.title) for kind in KINDS.values()}


def test_a_missing_part_of_a_module_is_reported() -> None:
    """The check reports a name that does not exist in a module."""
    assert _exists("duetime.domain.tasks.states.LEGAL")
    assert not _exists("duetime.domain.tasks.states.ILLEGAL")
    assert not _exists("duetime.domain.nowhere")


def _exists(name: str) -> bool:
    module, _, attribute = name.rpartition(".")
    try:
        import_module(name)
    except ModuleNotFoundError:
        if not module:
            return False
        try:
            return hasattr(import_module(module), attribute)
        except ModuleNotFoundError:
            return False
    return True
