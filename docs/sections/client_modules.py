"""Modules of the core that the client has, too, as copies: it is installed alone, and imports nothing of the core."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_ROOT = Path(__file__).resolve().parents[2]
_CORE = _ROOT / "layers/duetime/python"
CLIENT = _ROOT / "client/duetime_client"
COPIED: Mapping[str, str] = {
    "duetime.domain.prices": "prices",
    "duetime.domain.cost_estimates.workload": "workload",
    "duetime.domain.cost_estimates.estimate": "cost_estimate",
    "duetime.contract.http.foreign_names": "foreign_names",
}
"""What the client calls each of them."""
_NAMES = {**COPIED, "duetime.domain.limits": "request_limits"}
"""What the client calls the modules that they import."""
_IMPORT = re.compile(r"(?<=from )duetime[\w.]+(?= import )")


def copy_of(module: str) -> str:
    """The text of the client's copy of a module of the core, which says what it is a copy of."""
    text = (_CORE / module.replace(".", "/")).with_suffix(".py").read_text(encoding="utf-8")
    renamed = _IMPORT.sub(lambda name: f"duetime_client.{_NAMES[name[0]]}", text)
    head = f"# Copied from {module} by `make docs`: change it there.\n"
    return head + "".join(_sorted_imports(renamed.splitlines(keepends=True)))


def _sorted_imports(lines: list[str]) -> list[str]:
    """The lines, with imports of the client that follow each other in the order of their new names."""
    groups = groupby(lines, lambda line: line.lstrip().startswith("from duetime_client."))
    return [line for is_import, group in groups for line in (sorted(group) if is_import else group)]
