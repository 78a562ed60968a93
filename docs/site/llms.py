"""Generates `docs/llms.txt`, which lists all pages for language models in the format of llmstxt.org."""

from __future__ import annotations

from itertools import groupby

from docs.site.navigation import DOCS, pages, settings

FILE = DOCS / "llms.txt"


def text() -> str:
    """Return the text, in which the pages are listed under their headings, each with its title and first sentence."""
    known = settings()
    lines = [f"# {known['site_name']}", "", f"> {known['site_description']}."]
    for heading, below in groupby(pages(), key=lambda page: page.heading):
        lines += ["", f"## {heading or 'Overview'}", ""]
        lines += [f"- [{page.title}]({page.name}): {page.summary}".removesuffix(": ") for page in below]
    return "\n".join([*lines, ""])
