"""Runs what a page shows, in order, against a duetime in virtual time.

A page's blocks share one account, one folder and one set of Python names, as they do for a reader who follows it:

* `python` is run; `client` is a client of the account. A block that begins with `# NAME.py` is also written there.
* `bash` and `console`: each `duetime` command is run, and has to end with 0. `ID`, and an id that the page shows, is
  the task that was created last. Of a block with prompts, the other lines are output; where it shows an error, the
  command has to fail.
* `json` has to be JSON. After `<!-- send: METHOD PATH -->` it is the body of such a request, which has to be accepted.
* A block after `<!-- file: NAME -->` is also written to that file.
* Blocks of other languages that begin with a comment `# NAME` are written to that file.
* `<!-- not run: REASON -->` before a block excuses it; `<!-- types: a b -->` names types that the reader has
  handlers for.
"""

from __future__ import annotations

import json
import re
import shlex
import signal
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC
from typing import TYPE_CHECKING, Any, NoReturn, Self

import httpx
from typer.testing import CliRunner

from duetime.handlers import REGISTRY, Context, Unretriable
from duetime_cdk.environments import Environment
from duetime_client.commands import connection
from duetime_client.commands.app import app
from duetime_client.commands.clock import Clock
from duetime_client.manifests import apply
from duetime_testing import Duetime
from duetime_testing.in_process import InProcessTransport

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    import pytest

NOT_RUN: Mapping[str, str] = {
    "aws": "needs an account of AWS",
    "cd": "changes a folder of the reader",
    "crontab": "changes the reader's machine",
    "curl": "needs a port; the same requests are shown as JSON",
    "echo": "is the shell's",
    "export": "is the shell's",
    "git": "changes the reader's checkout",
    "make": "is checked by test_named",
    "mkdir": "makes a folder of the reader",
    "npm": "needs a network",
    "npx": "needs an account of AWS",
    "pip": "needs a network",
    "pytest": "is run by test_testing_guide",
    "touch": "makes a file of the reader",
    "uv": "needs the packages, which are not published",
}
"""Programs of the pages that no test runs, and why."""
NEEDS_A_STACK: Mapping[str, str] = {
    "context": "is written to the reader's home",
    "dev": "starts the embedded AWS",
    "local": "starts the embedded AWS",
    "logs": "reads CloudWatch, or the logs of a local stack",
    "archive": "reads S3",
    "verify": "measures a deployment for minutes",
    "watch": "needs a WebSocket",
    "worker": "runs until it is ended",
}
"""Sub-commands that are only parsed (`test_commands.py`), and why."""
PATIENCE_SECONDS = 20
"""How long a block may take: one that waits for a worker that nobody runs would wait for ever."""
_BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>not run|send|types|file): (?P<note>.+?) -->\n\s*)?"
    r"^ *```(?P<language>[a-z]*)\n(?P<text>.*?)^ *```$"
    r"|^<!-- types: (?P<types>.+?) -->$",
    re.MULTILINE | re.DOTALL,
)
_FAILURE = re.compile(r"^(?:error: |state +failed)", re.MULTILINE)
_EXAMPLE_ID = re.compile(r"(?:ID\b|01[0-9A-HJKMNP-TV-Z]{24}|01[0-9A-Z]{4}…)")
_FILE = re.compile(r"(?:#|//) ([\w./-]+\.\w+|crontab)\n")


@dataclass
class Block:
    """What stands between fences.

    Attributes:
        line: where it begins.
        mark: "not run", "send" or "file", if a comment before it says so.
        note: what that comment says.
    """

    line: int
    language: str
    text: str
    mark: str | None = None
    note: str | None = None


def blocks_of(page: str) -> Iterator[Block]:
    """The blocks of a page; types that it declares are blocks of the language `types`."""
    for found in _BLOCK.finditer(page):
        line = page.count("\n", 0, found.start()) + 1
        if found["types"]:
            yield Block(line, "types", found["types"])
            continue
        if found["mark"] == "types":
            yield Block(line, "types", found["note"])
        mark = None if found["mark"] == "types" else found["mark"]
        yield Block(line, found["language"], found["text"], mark, found["note"])


@dataclass(frozen=True)
class Command:
    """A command of a block, and what the page shows of its output."""

    words: tuple[str, ...]
    output: str = ""

    @property
    def fails(self) -> bool:
        """Whether the page says that it is refused, or that the task that it waits for fails."""
        return bool(_FAILURE.search(self.output))


def commands_in(text: str) -> list[Command]:
    """The commands of a block: what follows a prompt, or all of a block without prompts."""
    has_prompts = re.search(r"^\s*\$ ", text, re.MULTILINE) is not None
    found: list[Command] = []
    pending = ""
    for line in text.replace("\\\n", " ").splitlines():
        if pending:
            pending += f"\n{line}"
        elif has_prompts and not line.lstrip().startswith("$ "):
            if found:
                found[-1] = Command(found[-1].words, f"{found[-1].output}{line}\n")
            continue
        else:
            pending = line.strip().removeprefix("$ ")
        try:
            words = tuple(shlex.split(pending, comments=True))
        except ValueError:  # a quotation goes on in the next line
            continue
        pending = ""
        if words:
            found.append(Command(words))
    if pending:
        raise PageBroken(f"a quotation has no end: {pending}")
    return found


class PageBroken(AssertionError):
    """A block of a page does not do what a reader expects."""


class _InThisThread(nullcontext[None]):
    """Calls one after the other: virtual time belongs to the thread of the test."""

    def __init__(self, _threads: int) -> None:
        super().__init__()

    def __enter__(self) -> Self:  # type: ignore[override]
        return self

    map = staticmethod(map)


def _too_long(_signal: int, _frame: object) -> NoReturn:
    raise TimeoutError(f"it takes more than {PATIENCE_SECONDS} s")


def _refuse(_context: Context, payload: object) -> NoReturn:
    raise Unretriable(f"echo.refuse refuses {payload}")


def _job(context: Context, payload: Mapping[str, Any]) -> Mapping[str, Any]:
    if context.attempt <= payload.get("fail_times", 0):
        raise ConnectionError("the job failed")
    return {"job": payload["job"], "attempt": context.attempt}


@dataclass
class PageRunner:
    """Runs the blocks of one page."""

    folder: Path
    monkeypatch: pytest.MonkeyPatch
    duetime: Duetime = field(default_factory=Duetime)
    ran: int = 0
    latest: str = ""

    def __post_init__(self) -> None:
        """Stand in the folder, with a client for commands."""
        client = self.duetime.client
        self.names: dict[str, Any] = {
            "client": client,
            "duetime": self.duetime,
            "Environment": Environment,
            "__name__": "page",
        }
        self.monkeypatch.chdir(self.folder)
        self.monkeypatch.syspath_prepend(str(self.folder))
        self.monkeypatch.setenv("DUETIME_URL", "http://localhost")
        self.monkeypatch.setattr(apply, "ThreadPoolExecutor", _InThisThread)
        self.monkeypatch.setattr(connection, "Client", lambda *_a, **_k: nullcontext(client))
        for task_type in ("echo", "report", "sleep"):
            self.duetime.register(task_type, lambda _context, payload: payload)
        self.duetime.register("echo.refuse", _refuse)
        self.duetime.register("ci.job", _job)
        self.duetime.pull("pulled")
        self._registered = dict(REGISTRY)

    def close(self) -> None:
        """Forget the page's handlers."""
        signal.alarm(0)
        self.duetime.close()
        REGISTRY.clear()
        REGISTRY.update(self._registered)

    def run(self, page: str) -> None:
        """Run each block.

        Raises:
            PageBroken: one fails; the message names its line.
        """
        signal.signal(signal.SIGALRM, _too_long)
        for block in blocks_of(page):
            signal.alarm(PATIENCE_SECONDS)
            if block.mark == "not run":
                continue
            try:
                self._run(block)
            except (Exception, SystemExit) as error:
                raise PageBroken(f"line {block.line}: {type(error).__name__}: {error}") from error

    def _run(self, block: Block) -> None:
        if block.mark == "file" and block.note is not None:
            (self.folder / block.note).write_text(block.text, encoding="utf-8")
        if named := _FILE.match(block.text):
            (self.folder / named[1]).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / named[1]).write_text(block.text[named.end() :], encoding="utf-8")
        match block.language:
            case "types":
                for task_type in block.text.replace(",", " ").split():
                    self.duetime.register(task_type, lambda _context, payload: payload)
                return
            case "python":
                exec(compile(block.text, f"line {block.line}", "exec"), self.names)  # noqa: S102 - our own pages
            case "bash" | "console":
                for command in commands_in(block.text):
                    self._command(command)
            case "json":
                self._json(block)
            case _:
                return
        self.ran += 1

    def _command(self, command: Command) -> None:
        program, *words = command.words
        if program in NOT_RUN or (words and words[0] in NEEDS_A_STACK):
            return
        assert program == "duetime", f"{program} is neither run nor excused"
        words, target = (words[: words.index(">")], words[-1]) if ">" in words else (words, "")
        words = [self._latest() if _EXAMPLE_ID.fullmatch(word) else word for word in words]
        clock = Clock(now=lambda: self.duetime.now, zone=UTC, sleep=self.duetime.sleep)
        done = CliRunner().invoke(app, words, obj=clock, input="y\n")
        said = f"duetime {' '.join(words)}: {done.output} {done.exception or ''}"
        assert done.exit_code == int(command.fails), said
        if words[1:2] in (["create"], ["run"]) and (created := _EXAMPLE_ID.search(done.stdout)):
            self.latest = created[0]
        if target:
            (self.folder / target).write_text(done.stdout, encoding="utf-8")

    def _latest(self) -> str:
        if self.latest:
            return self.latest
        found: Any = max(self.duetime.client.tasks.list(), key=lambda task: task.created_at)
        return str(found.id)

    def _json(self, block: Block) -> None:
        content = json.loads(block.text)
        if block.mark != "send" or block.note is None:
            return
        method, path = block.note.split()
        transport = InProcessTransport(self.duetime._begin, self.duetime._after_change)
        with httpx.Client(transport=transport, base_url="http://localhost") as http:
            answer = http.request(method, path, json=content)
        assert answer.is_success, answer.text
