"""Finds the project's pages and tests by name."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])

_TEST = re.compile(r"^def (test_\w+)\(", re.MULTILINE)


def name_of(page: Path) -> str:
    """Return a page's path in the checkout."""
    return page.relative_to(ROOT).as_posix()


@cache
def all_tests() -> frozenset[str]:
    """Return the names of all tests."""
    modules = (ROOT / "tests").rglob("test_*.py")
    return frozenset(name for path in modules for name in _TEST.findall(path.read_text(encoding="utf-8")))
