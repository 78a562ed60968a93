"""Tests that features described as missing do not exist; each sentence is registered with a check or a reason."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import pytest

from duetime.contract.openapi.document import document
from tests.docs.pages import PAGES, ROOT, name_of
from tests.scenarios.scenario import PLAIN
from tests.scenarios.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

_LACK = (
    r"\bnot implemented\b",
    r"\bnot (?:[\w-]+ ){0,9}yet\b",
    r"\b(?:no|none|nobody|nothing) (?:[\w-]+ ){0,9}yet\b",
    r"\bnot supported\b",
    r"\bdoes not support\b",
    r"\bduetime (?:cannot|has no|does not)\b",
    r"\bthere (?:is|are) no (?:setting|second|limit|rate|view|number|access|approval|way|option|command|`)",
)
LACK = re.compile("|".join(_LACK), re.IGNORECASE)
LACK_OR_CANNOT = re.compile("|".join((*_LACK, r"(?<!that )\bcannot\b")), re.IGNORECASE)
"""In decision records, "cannot" gives a reason for a design and makes no claim about a feature."""
_GENERATED = re.compile(r"<!-- generated: .*?<!-- end -->|^```.*?^```", re.DOTALL | re.MULTILINE)
_BLOCK = re.compile(r"\n\s*\n|\n(?=[*|#>]|\d+\. )")
_SENTENCE = re.compile(r"(?<=[.:;?!]) (?=[A-Z*`\[])")
_OTHER_PAGES = (ROOT / "client" / "README.md",)
_TASK: Mapping[str, Any] = {"type": PLAIN}
_INNER = {"type": "a", "target": {"kind": "topology"}, "payload": {"nodes": {"b": _TASK}}}


@dataclass(frozen=True)
class Refused:
    """A request that is refused as long as duetime lacks the feature."""

    method: str
    path: str
    body: object = None
    query: str = ""

    def __call__(self) -> bool:
        """Return whether the request is refused."""
        with Tasks() as tasks:
            task_id = tasks.create(3_600_000)
            reply = tasks.ask(self.method, self.path.replace("ID", task_id), self.body, query=self.query)
            return reply.status in {400, 404, 422}


def lacks(pattern: str, words: str) -> bool:
    """Return whether no source file that matches a pattern has these words."""
    files = [path for path in ROOT.glob(pattern) if "node_modules" not in path.parts]
    assert files, pattern
    return not any(re.search(words, path.read_text(encoding="utf-8")) for path in files)


@cache
def is_refused_by_the_contract(operation_id: str, code: str) -> bool:
    """Return whether an operation declares a refusal with this code."""
    operations = [each for path in document()["paths"].values() for each in path.values() if isinstance(each, dict)]
    (found,) = [each for each in operations if each.get("operationId") == operation_id]
    return code in str(found["responses"])


def is_unpublished() -> bool:
    """Return whether the repository publishes no packages."""
    return lacks("Makefile", r"twine|uv publish") and lacks("client/pyproject.toml", "Development Status :: 5")


def is_not_deployed() -> bool:
    """Return whether the README still says, in the important places, that duetime has not been deployed to AWS."""
    return "has not been deployed to a real AWS account yet" in (ROOT / "README.md").read_text(encoding="utf-8")


UNMEASURED = is_not_deployed

ABSENT: Mapping[tuple[str, str], Callable[[], bool]] = {
    ("README.md", "has not been deployed to a real AWS account yet"): is_not_deployed,
    ("README.md", "no figures from AWS yet"): UNMEASURED,
    ("README.md", "not tried on AWS yet"): UNMEASURED,
    ("docs/comparison.md", "duetime has not run on a real AWS account yet"): is_not_deployed,
    ("docs/how-to/deploy.md", "duetime has not been deployed to a real AWS account yet"): is_not_deployed,
    ("docs/how-to/deploy.md", "The package is not published yet"): is_unpublished,
    ("docs/how-to/start-a-project.md", "The packages are not published yet"): is_unpublished,
    ("docs/how-to/plan-capacity-and-cost.md", "Nothing here has been measured on AWS yet"): UNMEASURED,
    ("docs/reference/how-a-task-is-not-lost.md", "duetime has not run on a real AWS account yet"): is_not_deployed,
    ("docs/reference/costs.md", "not been measured on AWS yet"): UNMEASURED,
    # Each line in the linked list is an entry of the page to which it links.
    ("docs/README.md", "## Not implemented"): partial(
        lacks, "layers/duetime/python/duetime/services/pull/*.py", r"tracer\.span\("
    ),
    ("docs/decisions/tracing.md", "have no spans of their own yet"): lambda: (
        lacks("layers/duetime/python/duetime/services/pull/*.py", r"tracer\.span\(")
        and lacks("layers/duetime/python/duetime/services/topologies/*.py", r"tracer\.span\(")
        and lacks("layers/duetime/python/duetime/adapters/targets/aws*.py", r"tracer\.span\(")
    ),
    ("docs/decisions/change-stream.md", "There is no access log of the WebSocket API"): partial(
        lacks, "infra/cdk/duetime_cdk/websocket_api.py", "(?i)access_?log_?setting"
    ),
    ("docs/decisions/packaging-and-deployment.md", "there is no second list of the settings"): partial(
        lacks, "infra/cdk/duetime_cdk/*.py", "CfnParameter"
    ),
    ("docs/decisions/history-and-lists.md", "There is no `fields` parameter"): Refused(
        "GET", "/v1/tasks", query="fields=id"
    ),
    ("docs/decisions/locks-rates-and-switches.md", "There is no limit for `all`"): Refused(
        "PUT", "/v1/switches/all/all", {"max_concurrent": 5}
    ),
    ("docs/how-to/stop-and-throttle.md", "There is no limit for `all`"): Refused(
        "PUT", "/v1/switches/all/all", {"max_concurrent": 5}
    ),
    ("docs/how-to/stop-and-throttle.md", "There is no rate for `all`"): Refused(
        "PUT", "/v1/switches/all/all", {"rate": {"limit": 5, "per_seconds": 1}}
    ),
    ("docs/how-to/make-a-task-unique.md", "its nodes cannot"): Refused(
        "POST", "/v1/topologies", {"nodes": {"a": {**_TASK, "unique": {"key": "x"}}}}
    ),
    ("docs/how-to/make-a-task-unique.md", "are chosen at creation and cannot be changed"): Refused(
        "PATCH", "/v1/tasks/ID", {"unique": {"key": "x"}}
    ),
    ("docs/migrations/airflow.md", "There is no setting that retries a whole graph"): Refused(
        "POST", "/v1/topologies", {"nodes": {"a": _TASK}, "retry": {"max_attempts": 3}}
    ),
    ("docs/how-to/run-a-graph-of-tasks.md", "`inputs` cannot be passed to it"): Refused(
        "POST", "/v1/topologies", {"nodes": {"c": _TASK, "n": {**_INNER, "depends_on": ["c"], "inputs": ["c"]}}}
    ),
    ("docs/how-to/run-a-pull-worker.md", "so there is no `rollback`"): Refused(
        "POST", "/v1/tasks", {"type": "x", "target": {"kind": "pull"}, "rollback_on_failure": True}
    ),
    ("docs/how-to/run-work-again-and-again.md", "Permanent schedules cannot have expectations"): Refused(
        "POST",
        "/v1/schedules",
        {"name": "x", "permanent": {"gap_seconds": 60}, "expect_every_seconds": 600, "task": _TASK},
    ),
    ("docs/how-to/run-work-again-and-again.md", "a calendar that a schedule uses cannot be deleted"): partial(
        is_refused_by_the_contract, "deleteCalendar", "calendar_in_use"
    ),
    ("docs/how-to/create-tasks-from-events.md", "An event cannot choose another owner"): Refused(
        "POST", "/v1/tasks", {**_TASK, "owner": "somebody"}
    ),
    ("docs/how-to/use-the-facts-of-a-run.md", "neither can the host of a URL"): Refused(
        "POST",
        "/v1/tasks",
        {**_TASK, "target": {"kind": "http", "url": "https://<duetime.task-id>.example.org/"}},
    ),
    ("docs/tutorial.md", "A running task cannot be cancelled without `--force`"): partial(
        is_refused_by_the_contract, "cancelTask", "state_conflict"
    ),
    ("docs/reference/api.md", "An operation on a topology cannot be cancelled"): lambda: (
        "An operation on topology nodes cannot be cancelled" in str(document()["paths"])
    ),
    ("client/README.md", "there is no option for it"): partial(
        lacks, "client/duetime_client/commands/*.py", '"--token"'
    ),
}
"""Quotations from pages about missing features, each with a check that is true as long as the feature is missing."""

EXPLAINS: Mapping[str, tuple[str, ...]] = {
    "docs/decisions/targets.md": ("has run them against AWS yet",),
    "docs/how-to/ask-an-assistant.md": ("that is not offered cannot be called",),
    "docs/how-to/call-an-http-endpoint.md": ("If a secret cannot be read",),
    "docs/how-to/find-out-why.md": ("it is not there yet, but",),
    "docs/how-to/limit-the-start-of-a-task.md": ("cannot start in time",),
    "docs/how-to/operate.md": ("ticks cannot process their minutes in time",),
    "docs/how-to/respond-to-an-alarm.md": ("cannot be imported", "it cannot start"),
    "docs/how-to/run-a-graph-of-tasks.md": ("parents that have not ended yet are null",),
    "docs/how-to/run-long-work.md": ("jobs cannot pause",),
    "docs/how-to/stop-and-throttle.md": ("If the switches cannot be read",),
    "docs/how-to/troubleshoot.md": ("cannot reach http", "cannot be imported in Lambda"),
    "docs/how-to/upgrade.md": ("old code cannot read",),
    "docs/how-to/use-the-facts-of-a-run.md": ("so that it cannot change the payload's structure",),
    "docs/how-to/write-a-python-handler.md": (
        "is not deployed yet",
        "that duetime does not use itself",
    ),
    "docs/reference/costs.md": ("Lambda's rate cannot be configured",),
    "docs/reference/metrics.md": ("no worker has received its message yet",),
    "docs/reference/how-a-task-is-not-lost.md": (
        "handlers cannot be imported",
        "schedules cannot be read",
        "cannot be kept as it is",
        "that UTF-8 cannot write",
    ),
    "docs/security.md": ("cannot be deleted by accident",),
    "docs/tutorial.md": ("If the package cannot be imported",),
}
"""Sentences with these words explain a condition or a reason, and are not about a missing feature."""


def sentences(page: Path) -> Iterator[str]:
    """Return the text of a page without generated parts and code, as sentences, table cells and headings."""
    for block in _BLOCK.split(_GENERATED.sub("", page.read_text(encoding="utf-8"))):
        for cell in block.split("|") if block.lstrip().startswith("|") else [block]:
            yield from _SENTENCE.split(" ".join(cell.split()))


def claims(page: Path) -> Iterator[str]:
    """Return the sentences of a page that may say that something is missing."""
    pattern = LACK if "decisions" in page.parts else LACK_OR_CANNOT
    return (each for each in sentences(page) if pattern.search(each))


@pytest.mark.parametrize("page", [*PAGES, *_OTHER_PAGES], ids=name_of)
def test_every_statement_about_a_missing_feature_is_registered(page: Path) -> None:
    """A sentence about something missing must be registered, with a check or as an explanation."""
    known = [words for where, words in ABSENT if where == name_of(page)]
    known += EXPLAINS.get(name_of(page), ())
    assert [each for each in claims(page) if not any(words in each for words in known)] == []


@pytest.mark.parametrize(("page", "words"), ABSENT)
def test_no_page_calls_an_existing_feature_missing(page: str, words: str) -> None:
    """No page calls an existing feature missing."""
    assert ABSENT[page, words](), f"{page} says {words!r}, which is no longer true"


def test_every_registered_statement_is_on_a_page() -> None:
    """An entry whose sentence is on no page must be removed."""
    pages = {name_of(page): [*claims(page)] for page in [*PAGES, *_OTHER_PAGES]}
    entries = [*ABSENT, *((page, words) for page, each in EXPLAINS.items() for words in each)]
    assert [(page, words) for page, words in entries if not any(words in each for each in pages[page])] == []


@pytest.mark.parametrize(
    "text",
    [
        "Graphs of graphs are not implemented.",
        "There is no setting for it.",
        "Rates are not supported.",
        "Maps have not been built\nyet.",
        "A node cannot have a condition.",
    ],
)
def test_a_new_statement_about_a_missing_feature_is_found(text: str, tmp_path: Path) -> None:
    """A new sentence about something missing is noticed in any wording, even across a line break."""
    page = tmp_path / "page.md"
    page.write_text(f"# Title\n\nFirst. {text} Last.\n", encoding="utf-8")
    assert [*claims(page)] == [" ".join(text.split())]
