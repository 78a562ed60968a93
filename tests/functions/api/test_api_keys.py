"""Tests of API keys, which administrators create, list and revoke, and which the gateway's authorizer checks."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb import schema
from duetime.domain.api_keys import SECRET_BITS
from duetime.domain.operating_parameters import API_KEY_KEPT
from duetime.domain.times import DAY, MINUTE, SECOND
from duetime.environment_variables import Variable
from functions.api.requests import session_end
from functions.authorizer.handler import handler as authorize
from tests import grants
from tests.functions.api.gateway import Answer, Context, Gateway

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.clocks import StandingClock
    from tests.fakes.session import FakeSession

ADMIN = Gateway({"jwt": {"claims": {"sub": "root"}}})


@pytest.fixture
def admin(environ: dict[str, str], compose: Callable[[], None]) -> Gateway:
    """An administrator's gateway to a deployment that accepts API keys as well as tokens."""
    environ |= {Variable.AUTHENTICATION: "jwt", Variable.ADMINS: "root", Variable.API_KEYS: "on"}
    compose()
    return ADMIN


def decided(text: str) -> dict[str, Any]:
    """The authorizer's decision on a request with this `Authorization` header."""
    event: dict[str, Any] = {"version": "2.0", "type": "REQUEST", "headers": {"authorization": text}}
    with grants.acting("authorizer"):
        return authorize(event, Context())  # type: ignore[arg-type] # a fake of Lambda's context


@dataclass(frozen=True)
class WithKey:
    """Sends requests with an API key, as a client would send them through the gateway."""

    key: str

    def send(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Answer | None:
        """Send a request, and return `None` if the gateway refuses it."""
        decision = decided(f"Bearer {self.key}")
        if not decision["isAuthorized"]:
            return None
        return Gateway({"lambda": decision["context"]}).send(method, path, body, headers)


def created(admin: Gateway, **more: object) -> dict[str, Any]:
    """Create a key, and return the response body."""
    answer = admin.send("POST", "/v1/keys", {"name": "n", "roles": ["writer"], "owner": "billing", **more})
    assert answer.status == 201, answer.text
    found: dict[str, Any] = answer.body
    return found


def test_a_key_acts_for_its_owner_with_its_roles(admin: Gateway) -> None:
    """Tasks created with a key belong to the key's owner, histories name the key, and other owners are refused."""
    key = created(admin)
    program = WithKey(key["key"])
    task = program.send("POST", "/key/v1/tasks", {"type": "report", "delay_seconds": 60})
    assert task is not None
    assert task.status == 201
    team = Gateway({"jwt": {"claims": {"sub": "billing"}}})
    assert team.listed() == [task.body["id"]]
    paused = program.send("POST", f"/key/v1/tasks/{task.body['id']}/pause")
    assert paused is not None
    assert paused.status == 200
    events = team.send("GET", f"/v1/tasks/{task.body['id']}/events").body["events"]
    assert events[-1]["actor"]["name"] == f"key {key['id']}"
    foreign = program.send("GET", "/key/v1/tasks", headers={"X-Duetime-Owner": "shipping"})
    assert foreign is not None
    assert (foreign.status, foreign.problem["code"]) == (403, "owner_forbidden")
    for path in ("/key/v1/dispatch", "/key/v1/keys"):
        refused = program.send("GET", path)
        assert refused is not None
        assert refused.status == 403
    found = program.send("GET", "/key/v1/settings")
    assert found is not None
    assert (found.body["owner"], found.body["owners"], found.body["roles"]) == (
        "billing",
        ["billing"],
        ["reader", "writer"],
    )


def test_a_key_has_only_its_roles_even_if_its_owner_has_more(
    admin: Gateway, environ: dict[str, str], compose: Callable[[], None]
) -> None:
    """A key has only the roles that it was created with, even if the key's owner is an operator or administrator."""
    environ |= {Variable.OPERATORS: "*", Variable.ADMINS: "*"}
    compose()
    refused = WithKey(created(admin, roles=["reader"])["key"]).send("POST", "/key/v1/tasks", {"type": "a"})
    assert refused is not None
    assert refused.problem["code"] == "role_required"


def test_a_key_acts_only_for_its_owner_in_the_local_stack(environ: dict[str, str], compose: Callable[[], None]) -> None:
    """In the local stack, a request without a key may name any owner, but a request with a key must not do so."""
    environ |= {Variable.ADMINS: "*", Variable.API_KEYS: "on"}
    compose()
    program = WithKey(created(Gateway())["key"])
    found = program.send("GET", "/key/v1/settings")
    assert found is not None
    assert (found.body["owner"], found.body["owners"]) == ("billing", ["billing"])
    foreign = program.send("GET", "/key/v1/tasks", headers={"X-Duetime-Owner": "local"})
    assert foreign is not None
    assert foreign.problem["code"] == "owner_forbidden"


def test_only_a_digest_of_a_key_is_stored(admin: Gateway, session: FakeSession, environ: dict[str, str]) -> None:
    """A key's secret is neither in the table nor in any response except the response to the key's creation."""
    key = created(admin)
    prefix, id_, secret = key["key"].split("_")
    assert (prefix, id_, len(secret) * 4) == ("dtk", key["id"], SECRET_BITS)
    stored = session.client("dynamodb").get_item(
        TableName=environ[Variable.TABLE], Key={"p": {"S": f"ak#{id_}"}, "s": {"S": id_}}
    )["Item"]
    assert secret not in str(stored)
    assert sha256(key["key"].encode()).hexdigest() in str(stored)
    (listed,) = admin.send("GET", "/v1/keys").body["keys"]
    assert listed == {name: value for name, value in key.items() if name != "key"}
    assert secret not in admin.send("DELETE", f"/v1/keys/{id_}").text


def test_a_revoked_key_is_refused_at_once(admin: Gateway, clock: StandingClock) -> None:
    """A revoked key is refused from the next request on, while another key with the same name stays valid."""
    first = created(admin)
    clock.at += SECOND
    second = created(admin)
    assert WithKey(first["key"]).send("GET", "/key/v1/tasks") is not None
    revoked = admin.send("DELETE", f"/v1/keys/{first['id']}").body
    assert (revoked["state"], revoked["revoked_at"]) == ("revoked", "2026-11-21T02:33:08.250Z")
    assert WithKey(first["key"]).send("GET", "/key/v1/tasks") is None
    assert WithKey(second["key"]).send("GET", "/key/v1/tasks") is not None
    assert admin.send("DELETE", f"/v1/keys/{first['id']}").body == revoked
    assert [each["state"] for each in admin.send("GET", "/v1/keys").body["keys"]] == ["revoked", "active"]


def test_an_expired_key_is_refused(admin: Gateway, clock: StandingClock) -> None:
    """A key is refused from its expiry on, and a key that expires in the past cannot be created."""
    key = created(admin, expires_at="2026-11-21T02:34:07.250Z")
    clock.at += MINUTE - 1
    assert WithKey(key["key"]).send("GET", "/key/v1/tasks") is not None
    clock.at += 1
    assert WithKey(key["key"]).send("GET", "/key/v1/tasks") is None
    assert admin.send("GET", "/v1/keys").body["keys"][0]["state"] == "expired"
    past = admin.send("POST", "/v1/keys", {"name": "n", "roles": ["reader"], "expires_at": "2026-11-20T00:00:00Z"})
    assert (past.status, list(past.faults)) == (422, ["expires_at"])


@pytest.mark.parametrize(
    "change",
    [
        lambda text: f"Basic {text}",
        lambda text: text,
        lambda _: "",
        lambda _: "Bearer",
        lambda _: "Bearer dtk__",
        lambda text: f"Bearer {text[:-1]}",
        lambda text: f"Bearer {text[:-1]}{'0' if text[-1] != '0' else '1'}",
        lambda text: f"Bearer {text.upper()}",
        lambda text: f"Bearer dtk_{'0' * 20}_{text.rpartition('_')[2]}",
        lambda text: f"Bearer {text}\u00e9\ud800",
    ],
)
def test_an_invalid_key_is_rejected(admin: Gateway, change: Callable[[str], str]) -> None:
    """A request with a wrong scheme, secret or id, or with a string that is not a key, is simply refused."""
    text = created(admin)["key"]
    assert decided(f"bearer  {text}")["isAuthorized"]
    assert decided(change(text)) == {"isAuthorized": False}


def test_the_use_of_a_key_is_recorded_at_most_once_an_hour(admin: Gateway, clock: StandingClock) -> None:
    """A key's use is recorded at most once an hour."""
    key = created(admin)
    assert admin.send("GET", "/v1/keys").body["keys"][0]["used_at"] is None
    for _ in range(3):
        decided(f"Bearer {key['key']}")
        clock.at += 20 * MINUTE - SECOND
    assert admin.send("GET", "/v1/keys").body["keys"][0]["used_at"] == "2026-11-21T02:33:07.250Z"
    clock.at += 3 * SECOND
    decided(f"Bearer {key['key']}")
    assert admin.send("GET", "/v1/keys").body["keys"][0]["used_at"] == "2026-11-21T03:33:07.250Z"


def test_the_item_of_a_revoked_or_expired_key_expires_30_days_later(
    admin: Gateway, clock: StandingClock, session: FakeSession, environ: dict[str, str]
) -> None:
    """A revoked or expired key's item expires 30 days later, and the item of a key without expiry does not expire."""

    def expiry(key: Mapping[str, Any]) -> int | None:
        item = session.client("dynamodb").get_item(
            TableName=environ[Variable.TABLE], Key={"p": {"S": f"ak#{key['id']}"}, "s": {"S": key["id"]}}
        )["Item"]
        return int(item[schema.TTL]["N"]) * SECOND if schema.TTL in item else None

    ending, endless = created(admin, expires_at="2026-12-21T00:00:00Z"), created(admin)
    found = expiry(ending)
    assert found is not None
    assert found >= clock.at + 29 * DAY + API_KEY_KEPT
    assert expiry(endless) is None
    admin.send("DELETE", f"/v1/keys/{endless['id']}")
    found = expiry(endless)
    assert found is not None
    assert 0 <= found - clock.at - API_KEY_KEPT < SECOND


def test_keys_are_listed_page_by_page(admin: Gateway, clock: StandingClock) -> None:
    """The keys of all owners are listed page by page, ordered by creation time."""
    names = [f"key-{number}" for number in range(5)]
    for name in names:
        created(admin, name=name, owner=name)
        clock.at += SECOND
    found: list[str] = []
    token = ""
    while token is not None:
        page = admin.send("GET", "/v1/keys", query=f"limit=2{token and f'&next_token={token}'}").body
        found += [each["name"] for each in page["keys"]]
        token = page["next_token"]
    assert found == names


def test_only_administrators_manage_keys(admin: Gateway) -> None:
    """Only administrators can create, list and revoke keys; by default, a key's owner is the administrator."""
    key = admin.send("POST", "/v1/keys", {"name": "n", "roles": ["worker", "reader", "reader"]}).body
    assert (key["owner"], key["created_by"], key["roles"]) == ("root", "root", ["reader", "worker"])
    other = Gateway({"jwt": {"claims": {"sub": "ann"}}})
    for method, path in (("POST", "/v1/keys"), ("GET", "/v1/keys"), ("DELETE", f"/v1/keys/{key['id']}")):
        refused = other.send(method, path, {"name": "n", "roles": ["admin"]} if method == "POST" else None)
        assert (refused.status, refused.problem["code"]) == (403, "role_required")
    handler = Gateway({"duetime": {"owner": "root", "task_id": "01M7XZ8CGJ0013P2ZBN3YDT3DX"}})
    assert handler.send("GET", "/v1/keys").problem["code"] == "role_required"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "", "roles": ["reader"]}, "name"),
        ({"name": "n" * 129, "roles": ["reader"]}, "name"),
        ({"name": "n", "roles": []}, "roles"),
        ({"name": "n", "roles": ["root"]}, "roles[0]"),
        ({"name": "n"}, "roles"),
        ({"name": "n", "roles": ["reader"], "owner": "a#b"}, "owner"),
        ({"name": "n", "roles": ["reader"], "expires_at": "soon"}, "expires_at"),
        ({"name": "n", "roles": ["reader"], "secret": "mine"}, "secret"),
    ],
)
def test_an_error_for_an_invalid_new_key_names_the_field(admin: Gateway, body: dict[str, Any], field: str) -> None:
    """If a field of a new key is invalid, the error names the field, and no key is created."""
    refused = admin.send("POST", "/v1/keys", body)
    assert (refused.status, list(refused.faults)) == (422, [field])
    assert admin.send("GET", "/v1/keys").body["keys"] == []


@pytest.mark.parametrize("id_", ["0" * 20, "x", "a%23b", "0" * 2000])
def test_an_unknown_key_is_not_found(admin: Gateway, id_: str) -> None:
    """Revoking an unknown key returns 404, whatever form the key's id has."""
    refused = admin.send("DELETE", f"/v1/keys/{id_}")
    assert (refused.status, refused.problem["code"]) == (404, "api_key_not_found")


def test_keys_cannot_be_created_if_the_deployment_does_not_accept_them(
    admin: Gateway, environ: dict[str, str], compose: Callable[[], None]
) -> None:
    """If the deployment does not accept API keys, no key can be created, and the error names the setting."""
    environ[Variable.API_KEYS] = ""
    compose()
    refused = admin.send("POST", "/v1/keys", {"name": "n", "roles": ["reader"]})
    assert (refused.status, refused.problem["code"]) == (409, "api_keys_off")
    assert "`api_keys`" in refused.problem["detail"]


def test_a_keys_live_connection_ends_after_ten_minutes_or_at_key_expiry(admin: Gateway, clock: StandingClock) -> None:
    """A key's live connection, which does not notice a revocation, ends after ten minutes or at the key's expiry."""
    for expires, ends in (("", 10 * MINUTE), ("2026-11-21T02:35:00Z", None)):
        key = created(admin, **({"expires_at": expires} if expires else {}))
        context = decided(f"Bearer {key['key']}")["context"]
        found = session_end({"requestContext": {"authorizer": {"lambda": context}}}, clock.at)
        assert found is not None
        assert found == (clock.at + ends if ends else clock.at + 112_750)
