"""Runs every snippet on the testing kit's how-to page, in a project that has only the page's files."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.docs.pages import ROOT

if TYPE_CHECKING:
    from pathlib import Path

PAGE = ROOT / "docs" / "how-to" / "test-your-tasks.md"
_SNIPPET = re.compile(r"^```(?:python|ini)\n# (\S+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.slow
def test_every_snippet_of_the_page_passes(tmp_path: Path) -> None:
    """Each snippet names its file; with these files, all tests pass, and every snippet is used."""
    text = PAGE.read_text(encoding="utf-8")
    snippets = _SNIPPET.findall(text)
    assert len(snippets) == len(re.findall(r"^```(?:python|ini)$", text, re.MULTILINE)) == 8
    for name, content in snippets:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, encoding="utf-8")
    tests = sum(content.count("\ndef test_") + content.startswith("def test_") for _, content in snippets)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--strict-markers"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)  # noqa: S603 - ours
    assert done.returncode == 0, done.stdout + done.stderr
    # One test runs for each of four faults.
    assert f"{tests + 3} passed" in done.stdout
