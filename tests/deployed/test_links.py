"""Tests of links on the deployed stack, which work through the gateway without credentials."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from duetime_client import Client
    from duetime_local.stack import Stack

BROWSER = {"Accept": "text/html"}


def test_a_links_form_approves_a_task_through_the_gateway(deployed: Stack, client: Client) -> None:
    """A browser gets a page whose form approves the task; after that, the link cannot be used again."""
    task = client.tasks.create("release", target={"kind": "approval"})
    link = client.task_links.create(task.id, ["approve", "reject"], message="Publish?")
    assert link.url.startswith(f"{deployed.ready.api_url}/v1/links/dtl_")
    page = httpx.get(link.url, headers=BROWSER, timeout=60)
    assert (page.status_code, "Publish?" in page.text) == (200, True)
    assert page.headers["Content-Security-Policy"].startswith("default-src 'none'")
    done = httpx.post(link.url, headers=BROWSER, timeout=60, data={"action": "approve", "reason": "tested"})
    assert (done.status_code, "Approved" in done.text) == (200, True)
    assert client.tasks.get(task.id).state == "succeeded"
    assert httpx.post(link.url, timeout=60, json={"action": "approve"}).status_code == 410
    assert httpx.get(f"{link.url[:-1]}z", timeout=60).status_code == 404
