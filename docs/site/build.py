"""Builds the documentation site (`python -m docs.site.build`) or, with `--serve`, shows the site on this machine.

The pages are written for a checkout and link to files outside `docs/`. The pages are copied to `build/pages`. In the
copy, from which the site is generated, links between the site's pages are adapted, and links to other files are
replaced by their text.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from docs.site import operations
from docs.site.navigation import DOCS, OUTSIDE, ROOT, name_of, pages

STAGED = ROOT / "build" / "pages"
SITE = ROOT / "build" / "site"
GENERATOR = ROOT / ".venv-docs" / "bin" / "zensical"
MERMAID = ROOT / "node_modules" / "@mermaid-js" / "tiny" / "dist" / "mermaid.tiny.js"
ADDRESS = "127.0.0.1:8780"
_SUFFIXES = frozenset({".md", ".json", ".svg", ".png", ".txt"})
_FENCE = re.compile(r"(^ *(?P<mark>```|~~~).*?^ *(?P=mark)[ ]*$)", re.MULTILINE | re.DOTALL)
_OPERATIONS = "<!-- on the site: operations -->"
_OPERATIONS_LINK = " Here, [operations and models](operations.md) shows it."
"""The text that replaces the comment `_OPERATIONS` on the site."""
_LINK = re.compile(r"(?<!\\)(?P<image>!?)\[(?P<label>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^)\s]+)\)")


class PagesNotListed(ValueError):
    """The navigation in `mkdocs.yml` omits pages, or names pages that do not exist."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(f"the navigation of mkdocs.yml and the pages differ: {', '.join(names)}")


def check_navigation() -> None:
    """Check that the navigation lists exactly the existing pages.

    Raises:
        PagesNotListed: a page is not in the navigation, or the navigation names a page that does not exist.
    """
    listed = {page.name for page in pages()}
    existing = {name_of(path) or "" for path in DOCS.rglob("*.md")} | set(OUTSIDE.values())
    if differing := sorted(listed ^ existing):
        raise PagesNotListed(differing)


def staged(text: str, source: Path) -> str:
    """Return a page's text for the site, in which links to files outside the site are replaced by their text."""
    here = Path(name_of(source) or "")

    def link(match: re.Match[str]) -> str:
        path, _, anchor = match["target"].partition("#")
        if re.match(r"[a-z][a-z0-9+.-]*:", path) or not path:
            return match[0]
        target = (source.parent / path).resolve()
        name = name_of(target) if target.is_file() else None
        if name is None:
            return match["label"]
        relative = os.path.relpath(name, here.parent)
        return f"{match['image']}[{match['label']}]({relative}{f'#{anchor}' if anchor else ''})"

    # Fenced code is copied unchanged.
    parts = _FENCE.split(text)
    linked = "".join(
        part if position % 3 == 1 else "" if position % 3 == 2 else _LINK.sub(link, part)  # noqa: PLR2004 - of the groups
        for position, part in enumerate(parts)
    )
    return linked.replace(_OPERATIONS, _OPERATIONS_LINK)


def stage() -> None:
    """Copy all pages, and the files that the pages use, to `build/pages`."""
    shutil.rmtree(STAGED, ignore_errors=True)
    sources = [path for path in DOCS.rglob("*") if path.suffix in _SUFFIXES and DOCS / "site" not in path.parents]
    for source in [*sources, *(ROOT / name for name in OUTSIDE)]:
        target = STAGED / (name_of(source) or "")
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            target.write_text(staged(source.read_text(encoding="utf-8"), source), encoding="utf-8")
        else:
            shutil.copyfile(source, target)
    (STAGED / operations.NAME).write_text(operations.text(), encoding="utf-8")
    shutil.copytree(DOCS / "site" / "assets", STAGED / "assets")
    shutil.copyfile(MERMAID, STAGED / "assets" / "mermaid.js")


def main() -> int:
    """Build the site, or show it until Ctrl-C.

    The returned exit code is that of the generator, which is not 0 if a link is broken.
    """
    parser = argparse.ArgumentParser(description="Build the documentation site.")
    parser.add_argument("--serve", action="store_true", help=f"show it at http://{ADDRESS} until Ctrl-C")
    is_served = parser.parse_args().serve
    check_navigation()
    stage()
    command = ["serve", "--dev-addr", ADDRESS] if is_served else ["build", "--clean", "--strict"]
    try:
        return subprocess.run([GENERATOR, *command], cwd=ROOT, check=False).returncode  # noqa: S603 - ours
    except KeyboardInterrupt:
        sys.stdout.write("\nThe site is no longer shown.\n")
        return 0


if __name__ == "__main__":
    raise SystemExit(main())
