"""Generates `docs/llms.txt`, a list of all pages for programs, in the format of llmstxt.org."""

from __future__ import annotations

from itertools import groupby

from docs.site.navigation import DOCS, pages, settings

FILE = DOCS / "llms.txt"


def text() -> str:
    """Return a list of the pages under their headings, each with its title and first sentence."""
    known = settings()
    lines = [f"# {known['site_name']}", "", f"> {known['site_description']}."]
    for heading, below in groupby(pages(), key=lambda page: page.heading):
        lines += ["", f"## {heading or 'Overview'}", ""]
        lines += [f"- [{page.title}]({page.name}): {page.summary}".removesuffix(": ") for page in below]
    return "\n".join([*lines, ""])
