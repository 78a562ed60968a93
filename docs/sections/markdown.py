"""Formats Markdown tables and lists, and reads the attribute docstrings of modules."""

from __future__ import annotations

import ast
import inspect
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import ModuleType


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; a vertical bar inside a cell is escaped."""
    first, *others = (f"| {' | '.join(line)} |" for line in (head, *([_cell(cell) for cell in row] for row in rows)))
    return "\n".join([first, f"|{'---|' * len(head)}", *others])


def bullets(rows: Iterable[tuple[str, str, str]]) -> str:
    """Return a Markdown list of names, each with its value's form and meaning."""
    return "\n".join(f"* {name}{f' ({form})' if form else ''}: {meaning}" for name, form, meaning in rows)


def code(text: object) -> str:
    """Return text as Markdown code."""
    return f"`{text}`"


def documented(module: ModuleType, class_name: str | None = None) -> dict[str, str]:
    """Return the names that a module or class assigns, each with the docstring below it ("" if there is none)."""
    body = ast.parse(inspect.getsource(module)).body
    if class_name is not None:
        body = next(node.body for node in body if isinstance(node, ast.ClassDef) and node.name == class_name)
    return dict(_documented(body))


def _documented(body: Sequence[ast.stmt]) -> Iterator[tuple[str, str]]:
    followers: list[ast.stmt | None] = [*body[1:], None]
    for node, follower in zip(body, followers, strict=True):
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(target, ast.Name):
            yield target.id, _text(follower)


def _text(node: ast.stmt | None) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return " ".join(node.value.value.split())
    return ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
