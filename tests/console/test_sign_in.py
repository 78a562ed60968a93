"""Tests signing in to the console with a token, or with an identity provider through OpenID Connect."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from duetime.environment_variables import Variable
from duetime_common.payload_codecs import ENCRYPTED
from functions.console.handler import content_security_policy
from tests.console.identity_provider import IdentityProvider

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page, Route

    from tests.console.conftest import Console
    from tests.console.world import World

pytestmark = pytest.mark.slow

CODEC = "https://codec.example.org/duetime"
REFUSED = ("status of 401", "status of 400")
STORED = "JSON.stringify([Object.entries(localStorage), Object.entries(sessionStorage)])"


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch, world: World, console: Console) -> Iterator[IdentityProvider]:
    """Return an identity provider in the console's settings, whose tokens the API requires."""
    made = IdentityProvider()
    monkeypatch.setenv(Variable.SIGN_IN, made.settings)
    world.accepted = made.token()
    console.expected = REFUSED
    yield made
    made.close()


def test_the_token_dialog_reopens_until_a_token_is_accepted(console: Console, world: World) -> None:
    """After a wrong token the dialog opens again; the correct token shows the page and is not stored in the browser."""
    world.accepted = "right-one"
    console.expected = REFUSED
    page = console.open("/tasks")
    dialog = page.locator("dialog")
    for typed in ("wrong-one", "right-one"):
        dialog.get_by_label("Token").fill(typed)
        dialog.get_by_role("button", name="Use this token").click()
        expect(dialog).to_have_count(1 if typed == "wrong-one" else 0)
    expect(page.get_by_role("heading", name="No tasks yet")).to_be_visible()
    assert "right-one" not in page.evaluate(STORED)
    page.reload()
    expect(dialog.get_by_label("Token")).to_be_visible()


def _sign_in(console: Console, path: str) -> Page:
    page = console.open(path)
    page.get_by_role("button", name=re.compile("Sign in at 127.0.0.1")).click()
    return page


def test_the_user_signs_in_and_returns_to_the_page(console: Console, world: World, provider: IdentityProvider) -> None:
    """Signing in uses the code flow with PKCE, keeps secrets out of addresses and storage, and renews silently."""
    page = _sign_in(console, "/schedules")
    expect(page.get_by_role("heading", name="No schedules yet")).to_be_visible()
    assert page.url == f"{world.url}#/schedules"
    assert provider.grants == ["authorization_code"]
    assert "e30" not in page.evaluate(STORED)
    assert "verifier" not in page.evaluate(STORED)
    # The token has expired, so the next request is refused and is repeated with a new token.
    provider.serial = 2
    world.accepted = provider.token()
    page.keyboard.press("r")
    expect(page.locator("dialog")).to_have_count(0)
    page.goto(page.url.replace("/schedules", "/tasks"))
    expect(page.get_by_role("heading", name="No tasks yet")).to_be_visible()
    assert provider.grants == ["authorization_code", "refresh_token"]


def test_the_sign_in_dialog_opens_if_the_token_cannot_be_renewed(
    console: Console, world: World, provider: IdentityProvider
) -> None:
    """If the token cannot be renewed, the page keeps its content, and the dialog gives the reason."""
    page = _sign_in(console, "/schedules")
    expect(page.get_by_role("heading", name="No schedules yet")).to_be_visible()
    provider.renews = False
    world.accepted = "another"
    page.keyboard.press("r")
    expect(page.locator("dialog")).to_contain_text("Your session has expired")
    expect(page.get_by_role("heading", name="No schedules yet", include_hidden=True)).to_be_visible()


@pytest.mark.parametrize("token", ["", f"dtk_{'0' * 20}_{'1' * 64}"])
def test_the_codec_endpoint_gets_the_identity_providers_token_but_no_api_key(
    console: Console, world: World, provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    """A request to decrypt a payload has the user's token only if it is from the identity provider."""
    monkeypatch.setenv(Variable.CODEC_ENDPOINT, CODEC)
    payload = {"$binary": {"base64": "AAAA", "content_type": ENCRYPTED}}
    task = world.create(payload=payload, delay_seconds=3600)
    world.accepted = token or provider.token()
    page = console.open("/tasks")
    sent: list[str | None] = []

    def decode(route: Route) -> None:
        headers = {"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Headers": "*, Authorization"}
        if route.request.method != "OPTIONS":
            sent.append(route.request.headers.get("authorization"))
        plain = [{"metadata": {}, "data": base64.b64encode(b'"plain"').decode()}]
        route.fulfill(status=200, headers=headers, json={"payloads": plain})

    page.route(f"{CODEC}/decode", decode)
    if token:
        page.locator("dialog").get_by_label("Token").fill(token)
        page.locator("dialog").get_by_role("button", name="Use this token").click()
    else:
        page.get_by_role("button", name=re.compile("Sign in at 127.0.0.1")).click()
    expect(page.get_by_role("table").first).to_contain_text("plain")
    page.goto(f"{world.url}#/tasks/{task}")
    page.get_by_role("button", name="Decrypt").click()
    expect(page.get_by_label("Payload", exact=True)).to_contain_text("plain")
    assert sent == [None if token else f"Bearer {provider.token()}"]


def test_an_unsolicited_sign_in_response_is_rejected(
    console: Console, world: World, provider: IdentityProvider
) -> None:
    """A code with an unknown state is rejected, and so is a token with a different nonce."""
    page = console.open("/tasks")
    page.goto(f"{world.url}?code=stolen&state=guessed#/tasks")
    expect(page.locator("dialog .fault")).to_contain_text("does not belong to a sign-in that was started here")
    assert provider.grants == []
    provider.nonce = "of another sign-in"
    page.get_by_role("button", name=re.compile("Sign in at")).click()
    expect(page.locator("dialog .fault")).to_contain_text("the token is not for this sign-in")


def test_the_policy_allows_only_the_identity_provider() -> None:
    """The page's policy allows only the origins in the settings, and only for requests."""
    provider = ("https://id.example.org/pool", "https://auth.example.org")
    policy = content_security_policy("wss://live.example.org/x", provider)
    assert "connect-src 'self' wss://live.example.org https://id.example.org https://auth.example.org;" in policy
    assert policy.count("example.org") == 3
