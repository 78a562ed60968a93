"""Creates projects from a template: handlers, tests, settings and a CDK app."""

from __future__ import annotations

import keyword
import re
import sys
from enum import StrEnum
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from duetime_client.errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from importlib.resources.abc import Traversable

TEMPLATE = "project_template"
PIPELINES = "pipeline_templates"
_SUFFIX = ".template"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*([._-][A-Za-z0-9]+)*")
_TAKEN = frozenset({"app", "aws_cdk", "duetime", "duetime_cdk", "duetime_client", "duetime_testing", "handlers"})
_TAKEN_TOO = frozenset({"settings", "test", "tests"})
_HARMLESS = frozenset({".git", ".gitkeep"})


class Pipeline(StrEnum):
    """The service whose pipeline deploys the project."""

    GITHUB = "github"


class ProjectRejected(ClientError, ValueError):
    """A project cannot be created with that name or in that folder."""


def package_name(project: str) -> str:
    """The import name of a project's handler package.

    Raises:
        ProjectRejected: the name cannot become a package name.
    """
    if _NAME.fullmatch(project) is None:
        raise ProjectRejected(
            f"{project!r} cannot name a project: a name begins with a letter, and has letters, digits, and single `-`,"
            " `_` or `.` between them"
        )
    name = re.sub(r"[._-]+", "_", project).lower()
    if keyword.iskeyword(name) or name in _TAKEN | _TAKEN_TOO or name in sys.stdlib_module_names:
        raise ProjectRejected(f"{project!r} cannot name a project: there is another package {name!r}")
    return name


def project_files(project: str, pipeline: Pipeline | None = None) -> Mapping[PurePosixPath, str]:
    """The files of a new project, by their paths in the project's folder.

    Args:
        project: the project's name.
        pipeline: adds a workflow that deploys the project, and the workflow's roles.

    Raises:
        ProjectRejected: the name is not valid.
    """
    words = {
        "@PACKAGE@": package_name(project),
        "@PROJECT@": project,
        "@VERSION@": version("duetime-client"),
    }
    templates = files("duetime_client")
    folders = [templates.joinpath(TEMPLATE), *([templates.joinpath(PIPELINES, pipeline)] if pipeline else [])]
    return {
        PurePosixPath(_filled(path, words)): _filled(file.read_text(encoding="utf-8"), words)
        for folder in folders
        for path, file in sorted(_walk(folder, ""), key=lambda found: found[0])
    }


def create_project(folder: Path, pipeline: Pipeline | None = None) -> list[Path]:
    """Create a project in a folder and name it after the folder; returns the project's files.

    Raises:
        ProjectRejected: the name is not valid, or the folder is in use.
    """
    contents = project_files(folder.resolve().name, pipeline)
    if folder.exists() and not folder.is_dir():
        raise ProjectRejected(f"{folder} is a file")
    present = sorted(path.name for path in folder.iterdir() if path.name not in _HARMLESS) if folder.exists() else []
    if present:
        raise ProjectRejected(f"{folder} is not empty: it has {present[0]}; nothing was written")
    written = []
    for path, text in contents.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        written.append(target)
    return written


def _walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _walk(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(_SUFFIX):
            yield f"{prefix}{entry.name.removesuffix(_SUFFIX)}", entry


def _filled(text: str, words: Mapping[str, str]) -> str:
    for word, value in words.items():
        text = text.replace(word, value)
    return text
