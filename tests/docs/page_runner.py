"""Runs a page's blocks, in order, with a duetime account in virtual time.

A page's blocks share one account, one folder and one set of Python names, as for a reader who follows the page:

* A `python` block is run, where `client` is a client of the account. A block that begins with `# NAME.py` is also
  written to that file.
* In a `bash` or `console` block, each `duetime` command is run and must exit with 0. `ID`, or an id that the page
  shows, stands for the id of the object created last. In a block with prompts the other lines are output; if they show
  an error, the command must fail. `duetime worker run` starts a pull worker, which leases tasks whenever a command
  waits. `curl` of `$DUETIME_URL` is a request to the account, which must be accepted.
* A `json` block must be JSON. After `<!-- send: METHOD PATH -->` it is the body of this request, which must succeed.
* A block after `<!-- file: NAME -->` is also written to that file.
* A block in another language that begins with a comment `# NAME` is written to that file.
* A block after `<!-- not run: REASON -->` is not run.
* `<!-- types: a b -->` names types for which the reader has handlers.
* `<!-- before: COMMANDS -->` has commands, one per line, that created what the reader already has.
* `<!-- has: NAME` begins a comment with the content of a file that the reader has.
* `<!-- later: 15s -->` advances the time.
"""

from __future__ import annotations

import json
import re
import shlex
import signal
import sys
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from itertools import takewhile
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn, Self

import httpx
from typer.testing import CliRunner

from duetime.environment_variables import Variable
from duetime.handlers import REGISTRY, Context, Unretriable
from duetime_cdk import DEV, LOCAL_STACK, PROD, STAGING, Environment
from duetime_client.commands import connection
from duetime_client.commands.app import app
from duetime_client.commands.clock import Clock
from duetime_client.commands.worker import worker_at
from duetime_client.manifests import apply
from duetime_client.pull_attempt import Attempt
from duetime_testing import Duetime
from duetime_testing.in_process_transport import InProcessTransport
from tests.docs.pages import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    import pytest

    from duetime_client.worker import Worker

IMPORTED_BY_SETTINGS: Mapping[str, object] = {
    "replace": replace,
    "Environment": Environment,
    "DEV": DEV,
    "STAGING": STAGING,
    "PROD": PROD,
    "LOCAL_STACK": LOCAL_STACK,
}
"""The names that settings on the pages use without an import."""
START = datetime(2026, 11, 21, 8, tzinfo=UTC)
"""The approximate time at which the outputs on the pages were recorded."""
NOT_RUN: Mapping[str, str] = {
    "aws": "needs an AWS account",
    "crontab": "changes the reader's machine",
    "echo": "is a shell command",
    "export": "is a shell command",
    "git": "changes the reader's checkout",
    "make": "is checked by test_named",
    "mkdir": "creates a folder for the reader",
    "npm": "needs a network",
    "npx": "needs an AWS account",
    "pip": "needs a network",
    "pytest": "is run by test_testing_guide",
    "touch": "creates a file for the reader",
    "uv": "needs the packages, which are not published",
}
"""Programs on pages that no test runs, each with the reason."""
NEEDS_A_STACK: Mapping[str, str] = {
    "context": "writes to the reader's home folder",
    "deploy": "needs an AWS account",
    "dev": "starts the embedded AWS",
    "local": "starts the embedded AWS",
    "logs": "reads CloudWatch, or the logs of a local stack",
    "archive": "reads S3",
    "template": "needs the CDK's command",
    "verify": "measures a deployment for minutes",
    "watch": "needs a WebSocket",
}
"""Sub-commands that are only parsed (`test_commands.py`), each with the reason."""
PATIENCE_SECONDS = 300
"""The longest time for a block, even on a busy machine; a block that waits for a missing worker would never end."""
_BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>not run|send|types|file): (?P<note>[^\n]+?) -->\n\s*)?"
    r"^ *```(?P<language>[a-z]*)\n(?P<text>.*?)^ *```$"
    r"|^<!-- (?P<hidden>types|before|has|later): (?P<content>.+?)\s*-->$",
    re.MULTILINE | re.DOTALL,
)
_FAILURE = re.compile(r"^(?:error: |line \d+: |state +failed|.*\d+ not imported$)", re.MULTILINE)
_EXAMPLE_ID = re.compile(r"(?:ID\b|01[0-9A-HJKMNP-TV-Z]{24}|01[0-9A-Z]{4}…)")
_STATUS = re.compile(r"(?:^HTTP/1.1 |\"status\": )(\d{3})\b", re.MULTILINE)
_HEADER = re.compile(r"^(ETag|Cache-Control|Content-Type): (.*)$", re.MULTILINE)
_FILE = re.compile(r"(?:#|//) ([\w./-]+\.\w+|crontab)\n")


@dataclass
class Block:
    """The content of a fenced block.

    Attributes:
        line: the number of its first line.
        mark: "not run", "send" or "file", if a preceding comment says so.
        note: the text of the preceding comment.
    """

    line: int
    language: str
    text: str
    mark: str | None = None
    note: str | None = None


def blocks_of(page: str) -> Iterator[Block]:
    """Return the blocks of a page; a standalone comment is a block whose language is its first word."""
    for found in _BLOCK.finditer(page):
        line = page.count("\n", 0, found.start()) + 1
        if found["hidden"]:
            yield Block(line, found["hidden"], found["content"])
            continue
        if found["mark"] == "types":
            yield Block(line, "types", found["note"])
        mark = None if found["mark"] == "types" else found["mark"]
        yield Block(line, found["language"], found["text"], mark, found["note"])


@dataclass(frozen=True)
class Command:
    """A command in a block, with the output that the page shows."""

    words: tuple[str, ...]
    output: str = ""

    @property
    def fails(self) -> bool:
        """Whether the page shows a rejection, or the failure of the awaited task."""
        return bool(_FAILURE.search(self.output))


def commands_in(text: str) -> list[Command]:
    """Return a block's commands, which are the lines after a prompt, or all lines if the block has no prompt."""
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
        except ValueError:  # a quotation continues on the next line
            continue
        pending = ""
        if words:
            found.append(Command(words))
    if pending:
        raise PageBroken(f"a quotation has no end: {pending}")
    return found


class PageBroken(AssertionError):
    """Raised if a block on a page does not work as described."""


class _InThisThread(nullcontext[None]):
    """Makes calls one after another, because virtual time belongs to the test's thread."""

    def __init__(self, _threads: int) -> None:
        super().__init__()

    def __enter__(self) -> Self:  # type: ignore[override]
        return self

    map = staticmethod(map)


def _too_long(_signal: int, _frame: object) -> NoReturn:
    raise TimeoutError("it takes too long")


def _refuse(_context: Context, payload: object) -> NoReturn:
    raise Unretriable(f"echo.refuse refuses {payload}")


@dataclass
class PageRunner:
    """Runs the blocks of one page."""

    folder: Path
    monkeypatch: pytest.MonkeyPatch
    duetime: Duetime = field(default_factory=lambda: Duetime(start=START))
    ran: int = 0
    latest: str = ""

    def __post_init__(self) -> None:
        """Change to the folder, and create a client for commands."""
        client = self.duetime.client
        # Dataclasses need to find the module by its name.
        page = ModuleType("page")
        self.names: dict[str, Any] = vars(page)
        self.names.update(IMPORTED_BY_SETTINGS, client=client, duetime=self.duetime)
        self.monkeypatch.setitem(sys.modules, "page", page)
        (self.folder / "examples").symlink_to(ROOT / "examples")
        self.monkeypatch.chdir(self.folder)
        self.monkeypatch.syspath_prepend(str(self.folder))
        self.monkeypatch.setenv("DUETIME_URL", "http://localhost")
        self.monkeypatch.setattr(apply, "ThreadPoolExecutor", _InThisThread)
        self.monkeypatch.setattr(connection, "Client", lambda *_a, **_k: nullcontext(client))
        for task_type in ("echo", "report", "sleep"):
            self.duetime.register(task_type, lambda _context, payload: payload)
        self.duetime.register("echo.refuse", _refuse)
        self.duetime.register("ci.job", self._job)
        self.duetime.register("defer", lambda context, _payload: context.defer())
        self.duetime.pull("pulled")
        self._registered = dict(REGISTRY)

    def close(self) -> None:
        """Remove the page's handlers and modules, because another page can have modules with the same names."""
        signal.alarm(0)
        self.duetime.close()
        own = [
            name for name, module in sys.modules.items() if str(self.folder) in (getattr(module, "__file__", "") or "")
        ]
        for name in own:
            del sys.modules[name]
        REGISTRY.clear()
        REGISTRY.update(self._registered)

    def run(self, page: str) -> None:
        """Run each block.

        Raises:
            PageBroken: a block fails; the message names its line.
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
            case "types" | "has" | "before" | "later":
                self._prepare(block)
                return
            case "python":
                before = dict(self.names)
                exec(compile(block.text, f"line {block.line}", "exec"), self.names)  # noqa: S102 - our own pages
                for name, value in self.names.items():
                    if isinstance(value, Environment) and before.get(name) is not value:
                        self._deploy(value)
            case "bash" | "console":
                for command in commands_in(block.text):
                    self._command(command)
            case "json":
                self._json(block)
            case _:
                return
        self.ran += 1

    def _deploy(self, environment: Environment) -> None:
        """Allow the pulled types and the AWS targets that the page's settings allow."""
        for task_type in environment.pulled_types:
            self.duetime.pull(task_type)
        account = self.duetime._account
        account.environ[Variable.AWS_TARGETS] += f" {' '.join(environment.aws_targets)}"
        account.generation += 1

    def _prepare(self, block: Block) -> None:
        """Run the preparations for the next block."""
        match block.language:
            case "types":
                for task_type in block.text.replace(",", " ").split():
                    self.duetime.register(task_type, lambda _context, payload: payload)
            case "has":
                name, _, content = block.text.partition("\n")
                (self.folder / name).write_text(content, encoding="utf-8")
            case "before":
                for command in commands_in(block.text):
                    self._command(command)
            case _:
                self.duetime.advance(seconds=float(block.text.removesuffix("s")))

    def _pull(self, worker: Worker) -> None:
        """Run the due tasks of a pull worker repeatedly; its handlers take no time."""
        client = self.duetime.client
        while True:
            for leased in client.leases.acquire(worker.types, wait_seconds=20):
                Attempt(client, leased, worker.lease_seconds).run(worker._handlers[leased.task.type].run)

    def _job(self, context: Context, payload: Mapping[str, Any]) -> Mapping[str, Any]:
        self.duetime.sleep(payload.get("work_ms", 0) / 1000)
        if context.attempt <= payload.get("fail_times", 0):
            raise ConnectionError("the job failed")
        return {"job": payload["job"], "attempt": context.attempt}

    def _command(self, command: Command) -> None:
        program, *words = takewhile(lambda word: word != "|", command.words)
        if program == "cd":
            self.monkeypatch.chdir(words[0])
        elif program == "curl":
            self._curl(words, command.output)
        elif words[:2] == ["worker", "run"]:
            self.duetime._account.time.start_process(partial(self._pull, worker_at(words[2])))
        elif program not in NOT_RUN and not (words and words[0] in NEEDS_A_STACK):
            assert program == "duetime", f"{program} is neither run nor marked as not run"
            self._duetime(words, fails=command.fails)

    def _duetime(self, words: list[str], *, fails: bool) -> None:
        words, target = (words[: words.index(">")], words[-1]) if ">" in words else (words, "")
        words = [self._latest(words) if _EXAMPLE_ID.fullmatch(word) else word for word in words]
        clock = Clock(now=lambda: self.duetime.now, zone=UTC, sleep=self.duetime.sleep)
        done = CliRunner().invoke(app, words, obj=clock, input="y\n")
        said = f"duetime {' '.join(words)}: {done.output} {done.exception or ''}"
        assert done.exit_code == int(fails), said
        if {"create", "run"} & set(words[1:3]) and (created := _EXAMPLE_ID.search(done.stdout)):
            self.latest = created[0]
        if target:
            (self.folder / target).write_text(done.stdout, encoding="utf-8")

    def _curl(self, words: list[str], output: str) -> None:
        """Make the request as curl does (`POST` if there is data). The page can show a status other than success."""
        method, url, body, headers = "", "", None, {}
        rest = iter(words)
        for word in rest:
            match word:
                case "-X":
                    method = next(rest)
                case "-d":
                    body = next(rest)
                case "-H":
                    name, _, value = next(rest).partition(": ")
                    headers[name] = value
                case _ if not word.startswith("-"):
                    url = word
        base, _, path = url.partition("/")
        assert base in {"$DUETIME_URL", "$API"}, f"{url} is not an address of the account"
        kind = ["bulk"] if "bulk-operations" in path else []
        path = "/".join(self._latest(kind) if _EXAMPLE_ID.fullmatch(part) else part for part in path.split("/"))
        shown = _STATUS.search(output)
        method = method or ("GET" if body is None else "POST")
        answer = self._send(method, f"/{path}", body, headers, shown and int(shown[1]))
        for name, value in _HEADER.findall(output):
            assert answer.headers.get(name) == value, f"{method} {path}: {name} is {answer.headers.get(name)}"

    def _latest(self, words: list[str]) -> str:
        """Return the id of the page's most recently created object of the kind that a command takes."""
        client = self.duetime.client
        match words:
            case ["bulk", *_]:
                return next(iter(client.bulk_operations.list())).id
            case ["schedules", "backfills", _, name, *_]:
                return next(iter(client.schedules.list_backfills(name))).id
        if self.latest:
            return self.latest
        found: Any = max(client.tasks.list(), key=lambda task: task.created_at)
        return str(found.id)

    def _json(self, block: Block) -> None:
        json.loads(block.text)
        if block.mark == "send" and block.note is not None:
            method, path = block.note.split()
            self._send(method, path, block.text)

    def _send(
        self,
        method: str,
        path: str,
        body: str | None,
        headers: Mapping[str, str] = {"Content-Type": "application/json"},
        status: int | None = None,
    ) -> httpx.Response:
        transport = InProcessTransport(self.duetime._begin, self.duetime._after_change)
        with httpx.Client(transport=transport, base_url="http://localhost") as http:
            answer = http.request(method, path, content=body, headers=dict(headers))
        assert answer.status_code == status if status else answer.is_success, f"{method} {path}: {answer.text}"
        if answer.status_code == HTTPStatus.CREATED and "id" in (created := answer.json()):
            self.latest = created["id"]
        return answer
