"""Build and check a release: `make release`. With RELEASE=1, it tags the commit. Nothing is pushed or uploaded."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infra import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

PACKAGES = {
    ".": "duetime",
    "client": "duetime_client",
    "common": "duetime_common",
    "testing": "duetime_testing",
    "infra/cdk": "duetime_cdk",
    "local": "duetime_local",
}
"""The folders of the distributions, and the package of each."""
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
"""The Python versions with which a release is checked."""
DIST = ROOT / "dist"
NOTES = ROOT / "build" / "release-notes.md"
_CHECKER = "twine@7.0.0"
_HEADING = re.compile(r"^## (?P<version>[^\s:]+)(?:: *(?P<date>.*))?$", re.MULTILINE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


class NotReleasable(Exception):
    """The checkout cannot be released as it is."""


@dataclass(frozen=True, slots=True)
class Section:
    """The section of a version in the changelog.

    Attributes:
        date: the text after the version in the heading, which is the release date, or a note that the version is
            unreleased.
        text: the release notes, without the heading.
    """

    date: str
    text: str


def project_of(folder: str) -> dict[str, Any]:
    """The `pyproject.toml` of a distribution."""
    return tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))


def version() -> str:
    """The version of all distributions.

    Raises:
        NotReleasable: the versions differ.
    """
    versions = {project_of(folder)["project"]["version"] for folder in PACKAGES}
    if len(versions) != 1:
        raise NotReleasable(f"the distributions have different versions: {', '.join(sorted(versions))}")
    return str(versions.pop())


def has_source_distribution(folder: str) -> bool:
    """Whether the wheel can be built from a source distribution, which requires that all files are in the folder."""
    return "force-include" not in project_of(folder)["tool"]["hatch"]["build"]["targets"]["wheel"]


def section_of(changelog: str, wanted: str) -> Section:
    """The section of a version.

    Raises:
        NotReleasable: the changelog has no such section.
    """
    headings = list(_HEADING.finditer(changelog))
    for heading, following in zip(headings, [*headings[1:], None], strict=True):
        if heading["version"] == wanted:
            end = following.start() if following else len(changelog)
            return Section((heading["date"] or "").strip(), changelog[heading.end() : end].strip() + "\n")
    raise NotReleasable(f"CHANGELOG.md has no section of version {wanted}")


def reasons_not_to_tag(wanted: str, section: Section, changes: str, tags: Sequence[str]) -> list[str]:
    """The reasons why a version cannot be tagged.

    Args:
        wanted: the version.
        section: its section in the changelog.
        changes: files with uncommitted changes, as Git lists them.
        tags: the existing tags.
    """
    reasons = []
    if _DATE.fullmatch(section.date) is None:
        reasons.append(f"the heading of CHANGELOG.md is not `## {wanted}: YYYY-MM-DD`")
    if changes:
        reasons.append("there are changes that are not committed")
    if f"v{wanted}" in tags:
        reasons.append(f"there is a tag v{wanted}")
    return reasons


def build() -> list[Path]:
    """Build the wheels and source distributions into `dist`, and check their metadata."""
    shutil.rmtree(DIST, ignore_errors=True)
    for folder in PACKAGES:
        # Without `--wheel`, the wheel is built from the source distribution, which also checks the source distribution.
        kinds = [] if has_source_distribution(folder) else ["--wheel"]
        _run([_uv(), "build", "--quiet", *kinds, "--out-dir", str(DIST), str(ROOT / folder)])
    built = sorted(path for path in DIST.iterdir() if path.suffix in {".whl", ".gz"})
    _run([_uv(), "tool", "run", _CHECKER, "check", "--strict", *map(str, built)])
    return built


def check_on(python: str, built: Sequence[Path], wanted: str) -> None:
    """Install the wheels in a clean environment, import each package, and run the tests of a new project.

    Args:
        python: path of the interpreter.
        built: the distributions.
        wanted: the version that the command `duetime` must print.
    """
    wheels = [str(path) for path in built if path.suffix == ".whl"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        programs = folder / "venv" / "bin"
        own = str(programs / "python")
        _run([_uv(), "venv", "--quiet", "--python", python, str(folder / "venv")], folder)
        _run([_uv(), "pip", "install", "--quiet", "--python", own, *wheels], folder)
        _run([own, "-c", f"import {', '.join(PACKAGES.values())}"], folder)
        printed = _run([str(programs / "duetime"), "--version"], folder)
        if printed.split() != ["duetime", wanted]:
            raise NotReleasable(f"`duetime --version` prints {printed.strip()!r}")
        _run([str(programs / "duetime"), "init", "web-shop"], folder)
        _run([own, "-m", "pytest", "-q", "-p", "no:cacheprovider"], folder / "web-shop")


def interpreter(python: str) -> str | None:
    """The path of an interpreter by its path or version; `None` if it is not installed."""
    found = subprocess.run(  # noqa: S603 - a tool of this checkout
        [_uv(), "python", "find", "--no-project", python], capture_output=True, text=True, check=False, cwd=Path("/")
    )
    return found.stdout.strip() if found.returncode == 0 else None


def main() -> None:
    """Build and check a release, and tag it if requested."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tag", action="store_true", help="create the tag if all checks pass")
    parser.add_argument("--pythons", default=" ".join(PYTHONS), help="versions or paths of interpreters")
    parser.add_argument("--all", action="store_true", help="fail if one of them is not installed")
    arguments = parser.parse_args()
    try:
        release(arguments.pythons.split(), tags=arguments.tag, needs_all=arguments.all or arguments.tag)
    except NotReleasable as error:
        sys.exit(f"not released: {error}")


def release(pythons: Sequence[str], *, tags: bool, needs_all: bool) -> None:
    """Build and check a release; create its tag only if `tags` is true.

    Raises:
        NotReleasable: a check failed.
    """
    wanted = version()
    section = section_of((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), wanted)
    reasons = reasons_not_to_tag(wanted, section, _git("status", "--porcelain"), _git("tag", "--list").split())
    if tags and reasons:
        raise NotReleasable("; ".join(reasons))
    found = {python: interpreter(python) for python in pythons}
    missing = [python for python, path in found.items() if path is None]
    if missing and needs_all:
        raise NotReleasable(f"not installed: Python {', '.join(missing)} (uv python install)")
    built = build()
    for path in filter(None, found.values()):
        _say(f"Checking the wheels with {path}")
        check_on(path, built, wanted)
    NOTES.parent.mkdir(exist_ok=True)
    NOTES.write_text(section.text, encoding="utf-8")
    _say(f"{len(built)} files in dist; the notes are in {NOTES.relative_to(ROOT)}")
    for python in missing:
        _say(f"Not checked: Python {python} is not installed")
    if tags:
        # The notes are kept verbatim, because lines that begin with # are headings.
        _git("tag", "--annotate", f"v{wanted}", "--cleanup=verbatim", "--file", str(NOTES))
        _say(f"Tagged v{wanted}. To publish it: git push origin v{wanted}")
    for reason in () if tags else reasons:
        _say(f"Before it can be tagged: {reason}")


def _uv() -> str:
    return str(Path(sys.executable).with_name("uv"))


def _git(*arguments: str) -> str:
    return _run(["git", *arguments], ROOT)


def _run(command: Sequence[str], folder: Path = ROOT) -> str:
    """Run a command without this checkout's Python path; returns its output.

    Raises:
        NotReleasable: the command failed.
    """
    kept = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run(command, cwd=folder, env=kept, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    if done.returncode:
        raise NotReleasable(f"`{' '.join(command[:4])}` failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
