"""Tests the shell commands in the Makefile's recipes."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = "/some where/duetime"


def test_recipes_quote_the_folder_of_the_checkout() -> None:
    """Recipes quote the checkout's path, because a folder's name can contain a space."""
    targets = ("setup", "test-lowest", "openapi-tools", "docs-tools")
    command = ("make", "--dry-run", "--always-make", "--no-print-directory", f"CURDIR={FOLDER}", *targets)
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout  # noqa: S603 - constant
    recipes = [line for line in printed.splitlines() if "/some" in line]
    assert len(recipes) > len(targets)
    words = [word for line in recipes for word in shlex.split(line.removesuffix("\\")) if "/some" in word]
    assert [word for word in words if FOLDER not in word] == []
