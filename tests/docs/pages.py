"""The project's pages, as tests look at them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])


def name_of(page: Path) -> str:
    """A page's path in the checkout."""
    return page.relative_to(ROOT).as_posix()


@cache
def all_tests() -> str:
    """The text of every module of tests, one after the other."""
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests").rglob("test_*.py")))
