"""For whom the viewer acts, in a browser."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from duetime.environment_variables import Variable

if TYPE_CHECKING:
    from playwright.sync_api import Route

    from tests.console.conftest import Console
    from tests.console.world import World

pytestmark = pytest.mark.slow


def test_the_viewer_chooses_the_owner(console: Console, world: World) -> None:
    """The page shows what the owner has, live; commands and requests name it; it is remembered in this browser."""
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
    # Whoever is no longer in the team is shown what is its own.
    console.expected = ("status of 403",)
    page.route("**/v1/**", _refused)
    page.reload()
    expect(page.locator(".acts-for")).to_have_count(0)
    expect(page.get_by_text("of my own").first).to_be_visible()


def _refused(route: Route) -> None:
    """Answer as the API does to a caller who may not act for the owner that it names."""
    if "x-duetime-owner" not in route.request.headers:
        route.continue_()
        return
    problem = {"status": 403, "code": "owner_forbidden", "title": "no", "detail": "no", "errors": []}
    route.fulfill(status=403, content_type="application/problem+json", body=json.dumps(problem))


def test_an_api_key_signs_in(console: Console, world: World) -> None:
    """It is typed where a token is, and goes to the paths of keys."""
    world.accepted = f"dtk_{'0' * 20}_{'1' * 64}"
    console.expected = ("status of 401",)
    page = console.open("/tasks")
    page.locator("dialog").get_by_label("Token").fill(world.accepted)
    page.locator("dialog").get_by_role("button", name="Use this token").click()
    expect(page.get_by_role("heading", name="No tasks yet")).to_be_visible()
    assert any(re.match("/key/v1/tasks", path) for _, path in world.requests)
