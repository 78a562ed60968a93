"""Stores named deployments ("contexts"), and chooses the context that a command uses."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from duetime_client.errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FILE_VARIABLE = "DUETIME_CONTEXTS"
CONTEXT_VARIABLE = "DUETIME_CONTEXT"
LOCAL = "local"
"""The built-in context of the stack that runs on this machine."""
READY_FILE = Path(".duetime", "local.json")
"""The file that a running local stack writes into its checkout."""
READY_FILE_VARIABLE = "DUETIME_READY_FILE"
"""Environment variable with the path of the ready file, if the stack was started with `--ready-file`."""


class ContextInvalid(ClientError, ValueError):
    """The file of contexts cannot be read."""

    def __init__(self, file: Path, reason: str) -> None:
        super().__init__(f"{file} is not a file of contexts: {reason}")


class ContextUnknown(ClientError, LookupError):
    """No context has this name."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        names = ", ".join(sorted(known)) or "none"
        super().__init__(f"there is no context {name!r}; known contexts: {names} (duetime context list)")


class DeploymentUnknown(ClientError, LookupError):
    """No deployment was chosen."""

    def __init__(self) -> None:
        super().__init__(
            "no deployment is named: give --url, set DUETIME_URL, choose a context (duetime context add),"
            " or start a stack on this machine (duetime dev)"
        )


class LocalStackStopped(ClientError, LookupError):
    """The chosen context is the local stack, which is not running."""

    def __init__(self) -> None:
        super().__init__(
            "no stack runs on this machine in this folder or a folder above it; `duetime dev` starts a stack"
        )


@dataclass(frozen=True, slots=True)
class Context:
    """A deployment.

    Attributes:
        url: address of its API.
        auth: how requests are authenticated: `none`, `bearer`, `iam` or `key`.
        owner: the owner to act for; empty for the caller.
        stack: the CloudFormation stack, if the address was read from the stack.
        codec: encrypts and decrypts on this machine, as `module:name`; empty for none.
    """

    url: str
    auth: str = "none"
    owner: str = ""
    stack: str = ""
    codec: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """The context that a command uses, and the reason for the choice."""

    context: Context
    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Contexts:
    """The added contexts, and the name of the context in use."""

    by_name: Mapping[str, Context]
    current: str = ""


def contexts_file() -> Path:
    """The path of the file of contexts."""
    if named := os.environ.get(FILE_VARIABLE):
        return Path(named)
    config = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(config) / "duetime" / "contexts.json"


def read_contexts(file: Path) -> Contexts:
    """The contexts in a file; empty if there is no file.

    Raises:
        ContextInvalid: the file is not a file of contexts.
    """
    try:
        document = json.loads(file.read_text())
        return Contexts(
            {name: Context(**fields) for name, fields in document["contexts"].items()}, document.get("current", "")
        )
    except FileNotFoundError:
        return Contexts({})
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ContextInvalid(file, f"{type(error).__name__}: {error}") from error


def write_contexts(file: Path, contexts: Contexts) -> None:
    """Write contexts atomically, readable only by the user."""
    file.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "current": contexts.current,
        "contexts": {name: asdict(each) for name, each in sorted(contexts.by_name.items())},
    }
    aside = file.with_name(f".{file.name}.{os.getpid()}")
    aside.touch(mode=0o600)
    aside.write_text(json.dumps(document, indent=2) + "\n")
    aside.replace(file)


def chosen(contexts: Contexts, wanted: str, folder: Path) -> Choice:
    """Choose the context of a command: the given context, else the context in use, else the local stack.

    Raises:
        ContextUnknown: no context has the given name.
        DeploymentUnknown: nothing was chosen, and no local stack is running.
        LocalStackStopped: the local stack was chosen and is not running.
    """
    name = wanted or contexts.current
    why = f"{CONTEXT_VARIABLE}={wanted}" if wanted else f"duetime context use {name}"
    if name in contexts.by_name:
        return Choice(contexts.by_name[name], name, why)
    if name not in {"", LOCAL}:
        raise ContextUnknown(name, {*contexts.by_name, LOCAL})
    url = local_url(folder)
    if url is not None:
        return Choice(Context(url), LOCAL, why if name else "it runs on this machine, and no context is in use")
    raise LocalStackStopped if name else DeploymentUnknown


def local_url(folder: Path) -> str | None:
    """The URL of the local stack, from the ready file in this checkout or at the path in the environment variable."""
    found = _running_stack(folder)
    return None if found is None else found[1]


def local_ready_file(folder: Path) -> Path | None:
    """The path of the local stack's ready file; `None` if no stack is running."""
    found = _running_stack(folder)
    return None if found is None else found[0]


def _running_stack(folder: Path) -> tuple[Path, str] | None:
    """The ready file and URL of a local stack whose process is alive."""
    named = os.environ.get(READY_FILE_VARIABLE)
    for file in [Path(named)] if named else [parent / READY_FILE for parent in (folder, *folder.parents)]:
        try:
            ready = json.loads(file.read_text())
            os.kill(int(ready["pid"]), 0)
            return file, str(ready["api_url"])
        except PermissionError:
            return None
        except (OSError, ValueError, TypeError, KeyError):
            continue
    return None
