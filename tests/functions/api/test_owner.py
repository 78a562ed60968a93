from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from duetime.composition import composed
from duetime.composition.stream import WatchTicketServices
from duetime.domain.live_updates import digest_of
from duetime.environment_variables import Variable
from tests.functions.api.gateway import Gateway

if TYPE_CHECKING:
    from collections.abc import Callable

ROLE = "arn:aws:sts::123456789012:assumed-role/Reports"


@pytest.fixture
def secured(environ: dict[str, str], compose: Callable[[], None], request: pytest.FixtureRequest) -> None:
    """Compose a deployment with the authentication that the test names."""
    environ[Variable.AUTHENTICATION] = request.param
    compose()


def iam(arn: str | None) -> Gateway:
    """A caller whom the gateway identifies by this ARN."""
    return Gateway({"iam": {"userArn": arn, "accountId": "123456789012"}})


def jwt(**claims: Any) -> Gateway:  # noqa: ANN401 - any claim
    """A caller whose token has these claims."""
    return Gateway({"jwt": {"claims": claims, "scopes": None}})


@pytest.mark.parametrize("secured", ["iam"], indirect=True)
@pytest.mark.usefixtures("secured")
def test_all_sessions_of_a_role_are_one_owner() -> None:
    """All sessions of a role are the same owner, while other roles, users and accounts are different owners."""
    task = iam(f"{ROLE}/one").create()
    assert iam(f"{ROLE}/two").listed() == [task["id"]]
    for other in (
        f"{ROLE}2/one",
        "arn:aws:iam::123456789012:user/Reports",
        "arn:aws:sts::210987654321:assumed-role/Reports/one",
        "arn:aws:iam::123456789012:root",
    ):
        assert iam(other).listed() == [], other


@pytest.mark.parametrize("secured", ["jwt"], indirect=True)
@pytest.mark.usefixtures("secured")
def test_the_subject_of_a_token_is_the_owner() -> None:
    """A token's subject owns the tasks that are created with the token, whatever other claims the token has."""
    task = jwt(sub="auth0|5f7c", email="a@example.org").create()
    assert jwt(sub="auth0|5f7c").listed() == [task["id"]]
    assert jwt(sub="auth0|5f7d", email="a@example.org").listed() == []


@pytest.mark.parametrize("secured", ["jwt"], indirect=True)
@pytest.mark.usefixtures("secured")
@pytest.mark.parametrize(
    ("expires", "ends"), [("1795228387", 1_795_228_387_000), ("soon", None), ("1e9", None), (None, None)]
)
def test_a_live_connection_ends_with_the_token(expires: str | None, ends: int | None) -> None:
    """The ticket has the token's expiry in milliseconds; an expiry that is not a number is ignored."""
    claims = {"sub": "ann"} if expires is None else {"sub": "ann", "exp": expires}
    ticket = jwt(**claims).send("POST", "/v1/watch-tickets").body["ticket"]
    store = composed(WatchTicketServices).tickets.store
    redeemed = store.redeem(digest_of(ticket), "one", composed().runtime.now())
    assert redeemed is not None
    assert redeemed.session_ends_at == ends


@pytest.mark.parametrize("secured", ["iam"], indirect=True)
@pytest.mark.usefixtures("secured")
def test_the_history_names_the_session_of_the_role_that_acted() -> None:
    """A role owns its tasks, and the history names the session of the role that acted. Users have no sessions."""
    for arn in (f"{ROLE}/anna", "arn:aws:iam::123456789012:user/Reports"):
        caller = iam(arn)
        task = caller.create({"type": "report", "delay_seconds": 60})
        caller.send("POST", f"/v1/tasks/{task['id']}/pause")
        created, paused = caller.send("GET", f"/v1/tasks/{task['id']}/events").body["events"]
        session = "/anna" if "anna" in arn else ""
        assert created["actor"]["kind"] == paused["actor"]["kind"] == "user"
        assert paused["actor"]["name"] == created["actor"]["name"] + session


@pytest.mark.parametrize("secured", ["iam", "jwt"], indirect=True)
@pytest.mark.usefixtures("secured")
@pytest.mark.parametrize(
    "caller", [Gateway(), Gateway({}), Gateway({"lambda": {}}), iam(None), iam(""), jwt(), jwt(sub=""), iam("nobody")]
)
def test_a_request_without_an_identity_is_unauthorized(caller: Gateway) -> None:
    """A request without an identity returns 401, even if the gateway lets the request through."""
    answer = caller.send("GET", "/v1/tasks")
    assert (answer.status, answer.problem["code"]) == (401, "unauthenticated")


@pytest.mark.parametrize("secured", ["iam", "jwt"], indirect=True)
@pytest.mark.usefixtures("secured")
def test_the_owner_header_may_name_only_the_caller() -> None:
    """The owner header may name the caller itself, but no other owner."""
    caller = Gateway({"iam": {"userArn": f"{ROLE}/one"}, "jwt": {"claims": {"sub": "123456789012:role/Reports"}}})
    refused = caller.send("POST", "/v1/tasks", {"type": "a"}, {"X-Duetime-Owner": "somebody"})
    assert (refused.status, refused.problem["code"]) == (403, "owner_forbidden")
    assert "'somebody'" in refused.problem["detail"]
    task = caller.create(headers={"X-Duetime-Owner": "123456789012:role/Reports"})
    assert caller.listed() == [task["id"]]
    assert list(caller.send("POST", "/v1/tasks", {"type": "a", "owner": "somebody"}).faults) == ["owner"]
    malformed = caller.send("GET", "/v1/tasks", headers={"X-Duetime-Owner": "a#b"})
    assert (malformed.status, list(malformed.faults)) == (400, ["X-Duetime-Owner"])


@pytest.mark.parametrize("secured", ["iam", "jwt"], indirect=True)
@pytest.mark.usefixtures("secured")
def test_members_of_a_team_share_its_tasks(environ: dict[str, str], compose: Callable[[], None]) -> None:
    """Members of a team share the team's tasks, and histories name who acted. Other callers are refused."""
    environ[Variable.TEAMS] = '{"billing": ["123456789012:role/Reports", "ann"], "shipping": ["bob"]}'
    compose()
    headers = {"X-Duetime-Owner": "billing"}
    ann = Gateway({"iam": {"userArn": f"{ROLE}/ann"}, "jwt": {"claims": {"sub": "ann"}}})
    task = ann.create({"type": "report", "delay_seconds": 60}, headers=headers)
    assert ann.listed() == []
    assert replace(ann, headers=headers).listed() == [task["id"]]
    assert replace(ann, headers=headers).send("POST", f"/v1/tasks/{task['id']}/pause").status == 200
    events = replace(ann, headers=headers).send("GET", f"/v1/tasks/{task['id']}/events").body["events"]
    assert events[-1]["actor"]["name"] in {"ann", "123456789012:role/Reports/ann"}
    assert ann.send("GET", "/v1/tasks", headers={"X-Duetime-Owner": "shipping"}).status == 403
    bob = Gateway({"iam": {"userArn": f"{ROLE}2/bob"}, "jwt": {"claims": {"sub": "cyd"}}})
    assert bob.send("GET", "/v1/tasks", headers=headers).status == 403


@pytest.mark.parametrize("secured", ["jwt"], indirect=True)
@pytest.mark.usefixtures("secured")
@pytest.mark.parametrize(
    ("teams", "allowed"),
    [
        ("[billing shipping]", True),
        ("billing", True),
        ("a,billing", True),
        (["billing"], True),
        ("[billings]", False),
        ("", False),
        (None, False),
        (7, False),
    ],
)
def test_a_claim_lists_the_teams_of_a_caller(
    environ: dict[str, str], compose: Callable[[], None], teams: object, allowed: object
) -> None:
    """If the settings name a claim for a caller's teams, the claim is read in each form that the gateway passes on."""
    caller = Gateway({"jwt": {"claims": {"sub": "ann", "cognito:groups": teams}}}, {"X-Duetime-Owner": "billing"})
    assert caller.send("GET", "/v1/tasks").status == 403
    environ[Variable.TEAMS_CLAIM] = "cognito:groups"
    compose()
    assert caller.send("GET", "/v1/tasks").status == (200 if allowed else 403)


@pytest.mark.parametrize("secured", ["jwt"], indirect=True)
@pytest.mark.usefixtures("secured")
@pytest.mark.parametrize("subject", ["s" * 129, "a#b", "a b", "ä", "nul\x00"])
def test_an_identity_that_cannot_be_stored_is_forbidden(subject: str) -> None:
    """An identity that is too long, or that contains separators of keys, returns 403."""
    answer = jwt(sub=subject).send("POST", "/v1/tasks", {"type": "a"})
    assert (answer.status, answer.problem["code"]) == (403, "forbidden")


@pytest.mark.parametrize("owner", ["", "o" * 129, "a#b", "a b", "ä"])
def test_without_authentication_the_header_names_the_owner(api: Gateway, owner: str) -> None:
    """Without authentication, the header names the owner, by default `local`, and an invalid name is refused."""
    answer = api.send("GET", "/v1/tasks", headers={"X-Duetime-Owner": owner})
    assert (answer.status, list(answer.faults)) == (400, ["X-Duetime-Owner"])
    task = api.create()
    assert api.send("GET", f"/v1/tasks/{task['id']}", headers={"X-Duetime-Owner": "local"}).body == task
