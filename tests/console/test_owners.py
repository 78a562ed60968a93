"""Tests, in a browser, the choice of the owner for whom the console's user acts."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from duetime.environment_variables import Variable

if TYPE_CHECKING:
    from playwright.sync_api import Route

    from tests.console.conftest import Console
    from tests.console.world import World

pytestmark = pytest.mark.slow


def test_the_user_selects_the_owner(console: Console, world: World) -> None:
    """The page shows the chosen owner's live content, requests name the owner, and the browser remembers the owner."""
    world.do(lambda live: live.environ.__setitem__(Variable.TEAMS, '{"billing": ["local"]}'))
    world.create(name="of my own")
    page = console.open("/tasks")
    expect(page.get_by_text("of my own").first).to_be_visible()
    page.goto(f"{world.url}#/settings")
    page.get_by_label("Owner to act for").select_option("billing")
    expect(page.locator(".acts-for")).to_have_text("billing")
    page.goto(f"{world.url}#/tasks")
    expect(page.get_by_role("heading", name="No tasks yet")).to_be_visible()
    console.check_accessibility(page)
    page.reload()
    expect(page.get_by_role("heading", name="No tasks yet")).to_be_visible()
    # A user who has left the team sees their own tasks again.
    console.expected = ("status of 403",)
    page.route("**/v1/**", _refused)
    page.reload()
    expect(page.locator(".acts-for")).to_have_count(0)
    expect(page.get_by_text("of my own").first).to_be_visible()


def test_a_late_ticket_of_the_previous_owner_opens_no_connection(console: Console, world: World) -> None:
    """Live updates are those of the chosen owner, even if the previous owner's ticket arrives last."""
    world.do(lambda live: live.environ.__setitem__(Variable.TEAMS, '{"billing": ["local"]}'))
    page = console.open("/settings")
    expect(page.locator(".live")).to_have_text("Live")
    held: list[Route] = []
    opened: list[str] = []

    def hold(route: Route) -> None:
        if "x-duetime-owner" in route.request.headers:
            route.continue_()
        else:
            held.append(route)

    page.route("**/v1/watch-tickets", hold)
    page.reload()
    expect(page.get_by_label("Owner to act for")).to_be_visible()
    page.on("websocket", lambda socket: opened.append(socket.url))
    page.get_by_label("Owner to act for").select_option("billing")
    expect(page.locator(".live")).to_have_text("Live")
    with page.expect_response("**/v1/watch-tickets"):
        held[0].continue_()
    page.wait_for_timeout(300)
    assert len(opened) == 1


def test_the_shown_commands_are_not_those_of_the_previous_owner(console: Console, world: World) -> None:
    """The commands of an action are hidden once the user acts for another owner, whom `curl` would name."""
    world.do(lambda live: live.environ.__setitem__(Variable.TEAMS, '{"billing": ["local"]}'))
    task_id = world.create(delay_seconds=7_200)
    page = console.open(f"/tasks/{task_id}")
    page.get_by_role("button", name="Pause").click()
    page.locator("dialog").get_by_role("button", name="Pause").click()
    expect(page.locator(".last-call")).to_contain_text("Done")
    page.goto(f"{world.url}#/settings")
    page.get_by_label("Owner to act for").select_option("billing")
    expect(page.locator(".acts-for")).to_have_text("billing")
    expect(page.locator(".last-call")).to_have_count(0)


def _refused(route: Route) -> None:
    """Respond as the API does to a caller who may not act for the named owner."""
    if "x-duetime-owner" not in route.request.headers:
        route.continue_()
        return
    problem = {"status": 403, "code": "owner_forbidden", "title": "no", "detail": "no", "errors": []}
    route.fulfill(status=403, content_type="application/problem+json", body=json.dumps(problem))


def test_an_api_key_signs_in(console: Console, world: World) -> None:
    """An API key is entered like a token, and requests then use the API's paths for keys."""
    world.accepted = f"dtk_{'0' * 20}_{'1' * 64}"
    console.expected = ("status of 401",)
    page = console.open("/tasks")
    page.locator("dialog").get_by_label("Token").fill(world.accepted)
    page.locator("dialog").get_by_role("button", name="Use this token").click()
    expect(page.get_by_role("heading", name="No tasks yet")).to_be_visible()
    assert any(re.match("/key/v1/tasks", path) for _, path in world.requests)


def test_an_administrator_creates_and_revokes_keys(console: Console) -> None:
    """A new key is shown once, and is listed with its roles."""
    page = console.open("/settings")
    page.get_by_role("button", name="Create a key").click()
    dialog = page.locator("dialog")
    dialog.get_by_label("Name").fill("billing api")
    dialog.get_by_label("Acts for").fill("billing")
    dialog.get_by_label("Role").select_option("reader")
    dialog.get_by_role("button", name="Create").click()
    expect(dialog.locator("code.key")).to_have_text(re.compile("^dtk_[0-9a-f]{20}_[0-9a-f]{64}$"))
    console.check_accessibility(page)
    dialog.get_by_role("button", name="Close").click()
    row = page.get_by_role("table", name="API keys").get_by_role("row", name="billing api")
    expect(row).to_contain_text(re.compile("billing.*reader.*never.*active until"))
    row.get_by_role("button", name="Revoke").click()
    dialog.get_by_role("button", name="Revoke").click()
    expect(row).to_contain_text("revoked")
    console.check_accessibility(page)


def test_a_user_who_is_not_an_administrator_sees_no_keys(console: Console, world: World) -> None:
    """For users who are not administrators, the page sends no requests about keys, because they would be refused."""
    world.do(lambda live: live.environ.__setitem__(Variable.ADMINS, "boss"))
    page = console.open("/settings")
    expect(page.get_by_role("heading", name="What is kept")).to_be_visible()
    expect(page.get_by_role("heading", name="API keys")).to_have_count(0)
    assert all("/v1/keys" not in path for _, path in world.requests)


def test_an_operator_sees_and_deletes_intake_rules(console: Console, world: World) -> None:
    """The page shows and deletes intake rules with their effects; a deployment without an intake shows no rules."""
    fields = {"payload": "detail.order", "tags.order": "detail.order.id"}
    pattern = {"source": ["com.example.orders"], "detail-type": ["OrderPlaced"]}
    create = {"pattern": pattern, "create": {"task": {"type": "mail.send", "delay_seconds": 60}, "fields": fields}}
    cancel = {"pattern": pattern, "cancel": {"filter": {"type": "mail.send"}, "fields": {"tags.order": "detail.id"}}}

    def set_rules(live: Any) -> None:  # noqa: ANN401 - the account
        for name, rule in (("order-placed", create), ("order-cancelled", cancel)):
            assert live.ask("PUT", f"/v1/intake-rules/{name}", rule).status == 200

    world.do(set_rules)
    page = console.open("/settings")
    table = page.get_by_role("table", name="Intake rules")
    row = table.get_by_role("row", name="order-placed")
    expect(row).to_contain_text("creates mail.send with payload = detail.order, tags.order = detail.order.id")
    console.check_accessibility(page)
    row.get_by_role("button", name="Delete").click()
    page.locator("dialog").get_by_role("button", name="Delete").click()
    expect(row).to_have_count(0)
    expect(table.get_by_role("row", name="order-cancelled")).to_contain_text(
        'cancels {"type":"mail.send"} with tags.order'
    )
    world.do(lambda live: live.environ.__setitem__(Variable.INTAKE_OWNER, ""))
    world.do(lambda live: live.machines.clear())
    console.expected = ("status of 409",)
    page = console.open("/settings")
    expect(page.get_by_role("heading", name="API keys")).to_be_visible()
    expect(page.get_by_role("heading", name="Intake rules")).to_have_count(0)
