"""Reads the pages of the site, in order and with their headings, from the navigation in `mkdocs.yml`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SETTINGS = ROOT / "mkdocs.yml"
OUTSIDE: Mapping[str, str] = {
    "README.md": "project.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "client/README.md": "client.md",
    "examples/celery-migration/README.md": "example-celery-migration.md",
    "examples/shop/README.md": "example-shop.md",
    "infra/cdk/README.md": "constructs.md",
    "testing/README.md": "testing-kit.md",
}
"""Pages that are outside `docs/` in the checkout, with their names on the site."""
BUILT = frozenset({"reference/operations.md"})
"""Pages that are generated when the site is built."""
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
_PARAGRAPH = re.compile(r"\n\n(?![#<>|!\n]|[*-] |\*Decided|\d\. )(.+?)(?=\n\n|\Z)", re.DOTALL)
_SENTENCE = re.compile(r"(.+?[.:?])(?=\s|$)", re.DOTALL)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


class _Loader(yaml.SafeLoader):
    """A safe loader for YAML with tags that name Python objects; the objects are not created."""


_Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda _loader, _suffix, _node: None)


@dataclass(frozen=True)
class Page:
    """A page on the site.

    Attributes:
        heading: the page's heading in the navigation ("" for the first page).
        name: the path of the page's Markdown file, relative to the site's root.
        source: the page's file in the checkout.
    """

    heading: str
    name: str
    source: Path

    @property
    def title(self) -> str:
        """The page's first heading."""
        found = _TITLE.search(self.source.read_text(encoding="utf-8"))
        return found[1] if found else self.name

    @property
    def summary(self) -> str:
        """The page's first sentence, in which links are replaced by their text."""
        text = re.sub(r"^```.*?^```", "", self.source.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        found = _PARAGRAPH.search(text)
        sentence = _SENTENCE.match(_LINK.sub(r"\1", " ".join(found[1].split()))) if found else None
        return re.sub(r":$", ".", sentence[1]) if sentence else ""


def settings() -> dict[str, Any]:
    """Return the parsed `mkdocs.yml`."""
    loaded: dict[str, Any] = yaml.load(SETTINGS.read_text(encoding="utf-8"), _Loader)  # noqa: S506 - a safe loader
    return loaded


def pages() -> list[Page]:
    """Return the pages that have a file in the checkout, in navigation order."""
    return [
        Page(heading, name, source_of(name)) for heading, name in _entries(settings()["nav"], "") if name not in BUILT
    ]


def source_of(name: str) -> Path:
    """Return the file in the checkout for a page on the site."""
    outside = {staged: source for source, staged in OUTSIDE.items()}
    return ROOT / outside[name] if name in outside else DOCS / ("README.md" if name == "index.md" else name)


def name_of(source: Path) -> str | None:
    """Return a file's name on the site, or `None` if the file is not part of the site."""
    path = source.relative_to(ROOT).as_posix()
    if path in OUTSIDE:
        return OUTSIDE[path]
    if path == "docs/README.md":
        return "index.md"
    below = PurePosixPath(path)
    is_shown = path.startswith("docs/") and below.suffix in {".md", ".json", ".svg", ".png", ".txt"}
    return below.relative_to("docs").as_posix() if is_shown else None


def _entries(nav: list[Any], heading: str) -> Iterator[tuple[str, str]]:
    for entry in nav:
        if isinstance(entry, str):
            yield heading, entry
        else:
            ((label, below),) = entry.items()
            if isinstance(below, str):
                yield heading, below
            else:
                yield from _entries(below, heading or label)
