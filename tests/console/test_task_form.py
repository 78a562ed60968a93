"""Tests, in a browser, the form that creates a task, with each task option and the request as JSON."""

from __future__ import annotations

import json
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from duetime.environment_variables import Variable
from tests.console.test_task_options import OUTSIDE_OF_THE_OPTIONS, places
from tests.scenarios.scenario import PLAIN

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.console.conftest import Console
    from tests.console.world import World
    from tests.scenarios.live import Live

pytestmark = pytest.mark.slow

FILLED: dict[str, Any] = {
    "due_at": "2030-01-02T03:04:05Z",
    "priority": "high",
    "expires_seconds": "600",
    "fair_key": "customer-17",
    "fair_weight": "3",
    "lock.key": "db-17",
    "lock.max_holders": "3",
    "lock.scope": "run",
    "lock.mode": "shared",
    "lock.wait_seconds": "900",
    "rate.key": "crm",
    "rate.limit": "50",
    "rate.per_seconds": "2",
    "rate.burst": "10",
    "timeout_seconds": "30",
    "retry.max_attempts": "7",
    "retry.initial_seconds": "2.5",
    "retry.multiplier": "3",
    "retry.max_seconds": "60",
    "retry.max_duration_seconds": "3600",
    "notify_within_seconds": "90",
    "rollback_on_failure": True,
    "target": '{"kind": "http", "url": "https://endpoint.example.org/work", "phases": ["rollback"]}',
    "allow_unknown_type": True,
    "callback_url": "https://example.org/ended",
    "notify_on.to": "https://example.org/alerts",
    "notify_on.late_seconds": "120",
    "notify_on.running_seconds": "900",
    "notify_on.failed": False,
    "tags": "team=dba\nenv=prod",
}
"""The text to type into each option, by the option's place in a request."""
OF_THE_SAME_KEY = {
    *("unique.key", "unique.until", "unique.on_conflict"),
    *("debounce.key", "debounce.seconds", "debounce.max_seconds"),
    *("order.key", "order.on_failure"),
    "group.id",
}
"""Options that a copy of a task does not get; some of these options exclude each other and a due time."""
INSTEAD_OF_A_LOCK = {"locks"}
"""Options that exclude the options for a single lock."""


def opened(page: Page) -> None:
    """Open the form for a new task, with all options visible."""
    page.get_by_role("button", name="New task").click()
    page.get_by_text("More options").click()


def test_the_form_has_a_field_for_each_field_of_a_request(console: Console) -> None:
    """Every field of `POST /v1/tasks` is in the form."""
    page = console.open("/tasks")
    opened(page)
    offered = page.locator("[data-option]").evaluate_all("all => all.map(one => one.dataset.option)")
    assert {*offered, *OUTSIDE_OF_THE_OPTIONS} == places()
    assert set(offered) == FILLED.keys() | OF_THE_SAME_KEY | INSTEAD_OF_A_LOCK
    console.check_accessibility(page)


def test_a_task_has_the_options_set_in_the_form(console: Console, world: World) -> None:
    """All options can be set at once, and a copy of the task has the same options."""
    page = console.open("/tasks")
    opened(page)
    page.get_by_label("Type", exact=True).fill(PLAIN)
    for path, value in FILLED.items():
        field = page.locator(f"[data-option='{path}'] :is(input, select, textarea)")
        if isinstance(value, bool):
            field.set_checked(value)
        elif path in {"priority", "lock.scope", "lock.mode"}:
            field.select_option(value)
        else:
            field.fill(value)
    page.get_by_role("button", name="Create", exact=True).click()
    page.wait_for_url("**#/tasks/*")
    task = world.ask("GET", f"/v1/tasks/{page.url.rpartition('/')[2]}")
    assert (task["priority"], task["expires_seconds"]) == ("high", 600)
    assert (task["fair_key"], task["fair_weight"]) == ("customer-17", 3)
    assert (task["timeout_seconds"], task["notify_within_seconds"]) == (30, 90)
    assert (task["due_at"], task["tags"]) == ("2030-01-02T03:04:05.000Z", {"team": "dba", "env": "prod"})
    assert task["lock"] == {
        "key": "db-17",
        "mode": "shared",
        "max_holders": 3,
        "scope": "run",
        "wait_seconds": 900,
    }
    assert task["rate"] == {"key": "crm", "limit": 50, "per_seconds": 2, "burst": 10}
    assert task["retry"].pop("max_duration_seconds") == 3600
    assert task["retry"] == {"max_attempts": 7, "initial_seconds": 2.5, "multiplier": 3.0, "max_seconds": 60.0}
    assert task["notify_on"] == {
        "to": "https://example.org/alerts",
        "failed": False,
        "late_seconds": 120,
        "running_seconds": 900,
    }
    assert (task["rollback_on_failure"], task["callback_url"]) == (True, "https://example.org/ended")
    assert task["target"]["url"] == "https://endpoint.example.org/work"
    about = page.locator("section", has=page.get_by_role("heading", name="About"))
    expect(about).to_contain_text(
        "of a start 2 min late and an attempt of more than 15 min to https://example.org/alerts"
    )
    expect(about).to_contain_text("https://example.org/ended")
    page.get_by_role("button", name="Run again…").click()
    page.get_by_role("button", name="Create", exact=True).click()
    page.wait_for_url(lambda url: task["id"] not in url)
    copy = world.ask("GET", f"/v1/tasks/{page.url.rpartition('/')[2]}")
    same = (
        *(path.partition(".")[0] for path in FILLED if path not in {"due_at", "allow_unknown_type"}),
        "type",
        "name",
    )
    assert copy["retry"].pop("max_duration_seconds") == 3600
    assert {name: copy[name] for name in same} == {name: task[name] for name in same}


def test_default_values_are_not_in_the_request_of_a_copy(console: Console, world: World) -> None:
    """Empty fields show the API's defaults, so a copy of a plain task sends none of these fields."""
    page = console.open(f"/tasks/{world.create(type=PLAIN)}")
    page.get_by_role("button", name="Run again…").click()
    page.get_by_role("button", name="Edit as JSON").click()
    assert json.loads(page.get_by_label("Request").input_value()) == {
        "type": PLAIN,
        "payload": None,
        "delay_seconds": 0,
    }


def test_a_task_is_created_from_json(console: Console, world: World) -> None:
    """A request that is typed as JSON is sent, and the form reports invalid JSON."""
    page = console.open("/tasks")
    page.get_by_role("button", name="New task").click()
    page.get_by_label("Type", exact=True).fill(PLAIN)
    page.get_by_role("button", name="Edit as JSON").click()
    request = page.get_by_label("Request")
    request.fill("{")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("This is not valid JSON")
    request.fill(json.dumps({"type": PLAIN, "expires_seconds": 30}))
    page.get_by_role("button", name="Create", exact=True).click()
    page.wait_for_url("**#/tasks/*")
    assert world.ask("GET", f"/v1/tasks/{page.url.rpartition('/')[2]}")["expires_seconds"] == 30


def test_a_task_is_debounced_by_a_key(console: Console, world: World) -> None:
    """A task is debounced by the key and the wait in the form, and a copy of the task has no debounce key."""
    page = console.open("/tasks")
    opened(page)
    page.get_by_label("Type", exact=True).fill(PLAIN)
    for path, value in {"debounce.key": "customer-17", "debounce.seconds": "30"}.items():
        page.locator(f"[data-option='{path}'] input").fill(value)
    page.get_by_role("button", name="Create", exact=True).click()
    page.wait_for_url("**#/tasks/*")
    task = world.ask("GET", f"/v1/tasks/{page.url.rpartition('/')[2]}")
    assert (task["debounce"]["key"], task["debounce"]["seconds"]) == ("customer-17", 30)
    expect(page.get_by_role("button", name="As a command")).to_be_visible()
    page.get_by_role("button", name="Run again…").click()
    page.get_by_role("button", name="Edit as JSON").click()
    assert "debounce" not in json.loads(page.locator("dialog textarea").input_value())


def test_a_task_is_created_with_a_unique_key(console: Console, world: World) -> None:
    """The chosen conflict policy of a unique key is sent."""
    page = console.open("/tasks")
    opened(page)
    page.get_by_label("Type", exact=True).fill(PLAIN)
    page.locator("[data-option='unique.key'] input").fill("customer-17")
    page.locator("[data-option='unique.until'] select").select_option("started")
    page.locator("[data-option='unique.on_conflict'] select").select_option("refuse")
    page.get_by_role("button", name="Create", exact=True).click()
    page.wait_for_url("**#/tasks/*")
    task = world.ask("GET", f"/v1/tasks/{page.url.rpartition('/')[2]}")
    assert task["unique"] == {"key": "customer-17", "until": "started", "on_conflict": "refuse"}


def test_a_known_type_shows_its_payload_and_its_defaults(
    console: Console, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The type is suggested, the payload starts as a template of the type's schema, and typed text is kept."""
    schema = {
        "properties": {"to": {"type": "string"}, "copies": {"type": "integer", "default": 1}},
        "required": ["to"],
        "type": "object",
    }
    types = ModuleType("types_of_a_form")
    types.TYPES = (PLAIN,)  # type: ignore[attr-defined]  # written by the layers' build
    form = {"phases": ["run"], "defaults": {"timeout_seconds": 30}, "payload_schema": json.dumps(schema)}
    types.HANDLERS = {PLAIN: form}  # type: ignore[attr-defined]  # same
    monkeypatch.setitem(sys.modules, types.__name__, types)

    def know(live: Live) -> None:
        live.environ[Variable.HANDLER_TYPES] = types.__name__
        live.generation += 1

    world.do(know)
    page = console.open("/tasks")
    page.get_by_role("button", name="New task").click()
    expect(page.locator(f"datalist option[value='{PLAIN}']")).to_be_attached()
    page.get_by_label("Type", exact=True).fill(PLAIN)
    expect(page.get_by_text("Handler payload: to (string), copies (integer, optional)")).to_be_visible()
    expect(page.get_by_text("timeout_seconds: 30")).to_be_visible()
    payload = page.get_by_label("Payload", exact=True)
    expect(payload).to_have_value(json.dumps({"to": "", "copies": 1}, indent=2))
    console.check_accessibility(page)
    payload.fill('{"to": "ada"}')
    page.get_by_label("Type", exact=True).fill(f"{PLAIN}x")
    page.get_by_label("Type", exact=True).fill(PLAIN)
    expect(payload).to_have_value('{"to": "ada"}')
    page.get_by_role("button", name="Create", exact=True).click()
    page.wait_for_url("**#/tasks/*")
    assert world.ask("GET", f"/v1/tasks/{page.url.rpartition('/')[2]}")["timeout_seconds"] == 30
