"""Tests that duetime does not use the modules that mypy skips."""

from __future__ import annotations

import tomllib

from infra import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_no_code_uses_a_module_that_mypy_skips() -> None:
    """No code uses a name from a module that mypy skips, because mypy would not find wrong uses of such a name."""
    skipped = [
        name.rpartition(".")[2]
        for override in PROJECT["tool"]["mypy"]["overrides"]
        if override.get("follow_imports") == "skip"
        for name in override["module"]
    ]
    folders = ("infra", "examples", "local", "tests/infra")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    assert any("aws_lambda" in path.read_text(encoding="utf-8") for path in files)
    for path in files:
        used = set(path.read_text(encoding="utf-8").replace("(", " ").replace(",", " ").replace(".", " ").split())
        assert not used.intersection(skipped), path
