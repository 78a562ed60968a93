"""Tests that the pinned packages are deployed, that each version has hashes, and that licenses can be listed."""

from __future__ import annotations

import hashlib
import json
import zipfile
from typing import TYPE_CHECKING

import pytest

from duetime_cdk.layers.install import RequirementsUninstallable, install
from duetime_cdk.layers.target import Target
from duetime_cdk.source_folders import CONSTRAINTS
from infra import ROOT
from infra.supply_chain.__main__ import pinned, summary

if TYPE_CHECKING:
    from pathlib import Path

METADATA = "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """Create a wheel for a distribution with one module."""
    path = tmp_path / "demo-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("demo.py", "")
        archive.writestr("demo-1.0.dist-info/METADATA", METADATA)
        archive.writestr("demo-1.0.dist-info/WHEEL", WHEEL)
        archive.writestr("demo-1.0.dist-info/RECORD", "")
    return path


@pytest.mark.parametrize("file", [CONSTRAINTS, ROOT / "infra" / "supply_chain" / "requirements.txt"])
def test_every_pinned_version_has_a_hash(file: Path) -> None:
    """Every pinned version has a hash, which `make lock` writes."""
    lines = file.read_text().splitlines()
    pins = [number for number, line in enumerate(lines) if "==" in line and not line.startswith((" ", "#"))]
    assert pins
    assert [lines[number] for number in pins if "--hash=sha256:" not in lines[number + 1]] == []


def test_a_layer_accepts_only_files_with_a_pinned_hash(wheel: Path, tmp_path: Path) -> None:
    """A file that was changed after `make lock` is refused, and nothing is deployed."""
    constraints, into = tmp_path / "constraints.txt", tmp_path / "layer"
    requirements = ["--no-index", "--find-links", str(wheel.parent), "demo"]
    good, bad = hashlib.sha256(wheel.read_bytes()).hexdigest(), "0" * 64
    constraints.write_text(f"demo==1.0 \\\n    --hash=sha256:{bad}\n")
    with pytest.raises(RequirementsUninstallable, match=r"(?i)hash"):
        install(requirements, constraints, Target.of_this_machine(), into)
    constraints.write_text(f"demo==1.0 \\\n    --hash=sha256:{good}\n")
    install(requirements, constraints, Target.of_this_machine(), into)
    assert pinned([into]) == ["demo==1.0"]


def test_an_sbom_is_summarized_by_licenses(tmp_path: Path) -> None:
    """Each component is listed with each of its licenses once, by expression, id or name, or with `none declared`."""
    licenses = [
        [{"expression": "MIT OR Apache-2.0"}],
        [{"license": {"id": "MIT"}}, {"license": {"id": "MIT"}}, {"license": {"name": "Own"}}],
        [],
    ]
    components = [{"name": name, "version": "1", "licenses": each} for name, each in zip("cab", licenses, strict=True)]
    path = tmp_path / "sbom.json"
    path.write_text(json.dumps({"components": components}))
    assert summary(path).splitlines() == ["a 1: MIT, Own", "b 1: none declared", "c 1: MIT OR Apache-2.0"]
