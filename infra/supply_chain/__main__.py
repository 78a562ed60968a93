"""Write software bills of materials for the packages that an environment deploys, and audit them.

The audit searches for known vulnerabilities. The packages of the layers are read from the built layers, not from the
requirements. AWS maintains Lambda's own Python, so it is not included.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duetime_cdk.errors import NotDeployable
from duetime_cdk.handlers_folder import handlers_of
from duetime_cdk.layers.build import Packages, build
from infra import ROOT
from infra.environments import ENVIRONMENTS, environment_named

if TYPE_CHECKING:
    from collections.abc import Sequence

TOOLS = ROOT / ".venv-supply" / "bin"
SBOM = ROOT / "build" / "sbom"
CONSOLE = ROOT / "console"


class ToolFailed(Exception):
    """A tool has failed, or has found a vulnerability."""


def deployed_folders(name: str) -> list[Path]:
    """The folders that the layers of an environment put on the path, built if they are missing.

    Raises:
        NotDeployable: a layer cannot be built.
    """
    environment = environment_named(name)
    handlers = handlers_of(environment)
    packages = Packages.of(handlers, environment.handlers_packages)
    built = build(environment.target, handlers.package, importing=environment.handlers_imported, packages=packages)
    layers = (built.dependencies, built.duetime, built.handlers, *built.packages.values())
    return [layer.folder / "python" for layer in layers]


def pinned(folders: Sequence[Path]) -> list[str]:
    """The distributions in folders, as requirements."""
    found = distributions(path=[str(each) for each in folders])
    return sorted({f"{each.metadata['Name']}=={each.version}" for each in found})


def write_python_sbom(folders: Sequence[Path], path: Path) -> None:
    """Write a CycloneDX document of the distributions in folders, with their declared licenses.

    Raises:
        ToolFailed: the tool cannot read the distributions.
    """
    environment = SBOM / "environment"
    shutil.rmtree(environment, ignore_errors=True)
    _run([sys.executable, "-m", "venv", "--without-pip", str(environment)])
    # The path of this environment contains only the folders.
    packages = next((environment / "lib").glob("python*/site-packages"))
    (packages / "deployed.pth").write_text("".join(f"{each}\n" for each in folders))
    _run(
        [
            str(TOOLS / "cyclonedx-py"),
            *("environment", "--output-reproducible", "--pyproject", str(ROOT / "pyproject.toml")),
            *("--output-file", str(path), str(environment)),
        ]
    )
    shutil.rmtree(environment)


def write_console_sbom(path: Path) -> None:
    """Write a CycloneDX document of the packages in the console's bundle.

    Raises:
        ToolFailed: npm cannot read the lock file.
    """
    command = ("npm", "sbom", "--package-lock-only", "--omit=dev", "--sbom-format=cyclonedx")
    path.write_text(_run(command, CONSOLE))


def audit(requirements: Sequence[str]) -> None:
    """Look up pinned distributions in PyPI's vulnerability database.

    Raises:
        ToolFailed: a distribution has a known vulnerability, or could not be looked up.
    """
    listed = SBOM / "deployed.txt"
    listed.write_text("".join(f"{each}\n" for each in requirements))
    command = ("--requirement", str(listed), "--no-deps", "--disable-pip", "--strict", "--progress-spinner=off")
    _run([str(TOOLS / "pip-audit"), *command])


def summary(path: Path) -> str:
    """The components of a document with their licenses, one per line."""
    document: dict[str, Any] = json.loads(path.read_text())
    lines = (f"{each['name']} {each['version']}: {_licenses(each)}" for each in document["components"])
    return "\n".join(sorted(lines, key=str.lower))


def _licenses(component: dict[str, Any]) -> str:
    found = component.get("licenses", [])
    names = [each.get("expression") or each["license"].get("id") or each["license"]["name"] for each in found]
    return ", ".join(dict.fromkeys(names)) or "none declared"


def _run(command: Sequence[str], folder: Path = ROOT) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603 - constants
    if done.returncode:
        raise ToolFailed(f"{Path(command[0]).name} has failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> None:
    """Write the documents, or audit the packages; a known vulnerability is an error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env", choices=sorted(ENVIRONMENTS), default="local")
    parser.add_argument("--audit", action="store_true")
    options = parser.parse_args()
    SBOM.mkdir(parents=True, exist_ok=True)
    try:
        folders = deployed_folders(options.env)
        if options.audit:
            audit(pinned(folders))
            return
        for path, write in (
            (SBOM / "functions.cdx.json", lambda path: write_python_sbom(folders, path)),
            (SBOM / "console.cdx.json", write_console_sbom),
        ):
            write(path)
            sys.stdout.write(f"{summary(path)}\n==> {path.relative_to(ROOT)}\n")
    except (NotDeployable, ToolFailed) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
