"""Tests listing the modules that a reader might want longer or shorter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.module_sizes import LONG, SHORT, modules_of, report

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

MODULES = {
    "made_up/__init__.py": "",
    "made_up/long.py": "x = 1\n" * (LONG + 1),
    "made_up/not_long.py": "x = 1\n" * LONG,
    "made_up/subject.py": "from made_up import satellite, shared, larger\nfrom made_up.inner import apart, own\n",
    "made_up/other.py": "from made_up import shared\n",
    "made_up/satellite.py": "x = 1\n" * (SHORT - 1),
    "made_up/larger.py": "x = 1\n" * SHORT,
    "made_up/shared.py": "x = 1\n",
    "made_up/inner/__init__.py": "",
    "made_up/inner/apart.py": "x = 1\n",
    "made_up/inner/own.py": "from made_up.inner import part\n",
    "made_up/inner/part.py": "x = 1\n",
}
"""Modules by file; one is long, two have a single importer in their folder, and the others just miss the criteria."""


def test_long_modules_and_satellites_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module is listed if it is too long, or if it is short and only a module in its own folder imports it."""
    for name, text in MODULES.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    assert report(modules_of(["made_up"], ["made_up"])) == [
        "1 modules of more than 400 lines",
        "    401 made_up.long",
        "2 modules of fewer than 60 lines whose only importer is in the same folder",
        "      1 made_up.inner.part, imported by made_up.inner.own",
        "     59 made_up.satellite, imported by made_up.subject",
    ]
