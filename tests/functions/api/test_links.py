"""Tests of links, with which someone without credentials can decide on, report on, or watch a single task."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from duetime.adapters.dynamodb import schema
from duetime.domain.limits import MAX_LINKS, MAX_RESULT_BYTES
from duetime.domain.operating_parameters import LINK_KEPT
from duetime.domain.times import DAY, HOUR, SECOND
from duetime.environment_variables import Variable
from tests.functions.api.gateway import Answer, Gateway

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.clocks import StandingClock
    from tests.fakes.session import FakeSession

ANN, BOB = (Gateway({"jwt": {"claims": {"sub": name}}}) for name in ("ann", "bob"))
ANYBODY = Gateway({})
APPROVAL = {"type": "pay", "name": "payout 17", "target": {"kind": "approval", "timeout_seconds": 86_400}}
BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
FORM = {**BROWSER, "Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture
def owner(environ: dict[str, str], compose: Callable[[], None]) -> Gateway:
    """An owner's gateway to a deployment that requires tokens, except for links."""
    environ |= {Variable.AUTHENTICATION: "jwt", Variable.API_URL: "https://api.example.org"}
    compose()
    return ANN


def approval(**more: object) -> str:
    """Create a task of Ann's that waits for an approval, and return its id."""
    answer = ANN.send("POST", "/v1/tasks", {**APPROVAL, **more})
    assert answer.status == 201, answer.text
    return str(answer.body["id"])


def created(task_id: str, actions: list[str], **more: object) -> dict[str, Any]:
    """Create a link to a task of Ann's, and return the response body."""
    answer = ANN.send("POST", f"/v1/tasks/{task_id}/links", {"actions": actions, **more})
    assert answer.status == 201, answer.text
    found: dict[str, Any] = answer.body
    return found


def path_of(link: Mapping[str, Any]) -> str:
    """The path in a link's URL."""
    url = str(link["url"])
    assert url.startswith("https://api.example.org/v1/links/dtl_")
    return url.removeprefix("https://api.example.org")


def stored_in(session: FakeSession, table: str) -> list[dict[str, Any]]:
    """All items in the table."""
    found: list[dict[str, Any]] = session.dynamodb.scan(TableName=table)["Items"]
    return found


def used(link: Mapping[str, Any], **body: object) -> Answer:
    """Use a link without credentials, and return the response."""
    return ANYBODY.send("POST", path_of(link), body)


def state_of(task_id: str) -> str:
    """The state of one of Ann's tasks, as the API shows it."""
    return str(ANN.send("GET", f"/v1/tasks/{task_id}").body["state"])


@pytest.mark.usefixtures("owner")
def test_a_link_approves_its_task_once() -> None:
    """A link approves its task with a payload, the task's event names the link, and a second use is refused."""
    task_id = approval()
    link = created(task_id, ["approve"], takes_payload=True)
    answer = used(link, payload={"limit": 500}, reason="as agreed")
    assert (answer.status, answer.body["used_for"], answer.body["task"]["state"]) == (200, "approve", "succeeded")
    assert ANN.send("GET", f"/v1/tasks/{task_id}").body["result"] == {"limit": 500}
    events = ANN.send("GET", f"/v1/tasks/{task_id}/events").body["events"]
    (event,) = [each for each in events if each["type"] == "approved"]
    assert (event["actor"]["name"], event["reason"]) == (f"link {link['id']}", "as agreed")
    again = used(link, payload={"limit": 500}, reason="as agreed")
    assert (again.status, again.body["code"]) == (410, "link_ended")
    seen = ANYBODY.send("GET", path_of(link))
    assert (seen.status, seen.body["used_for"], seen.body["is_awaited"]) == (200, "approve", False)


@pytest.mark.usefixtures("owner")
def test_a_link_rejects_its_task_with_a_reason() -> None:
    """A link rejects its task, which fails with the reason as its error."""
    task_id = approval()
    link = created(task_id, ["approve", "reject"])
    assert used(link).body["errors"][0]["field"] == "action"
    assert used(link, action="reject", reason="too much").status == 200
    task = ANN.send("GET", f"/v1/tasks/{task_id}").body
    assert (task["state"], task["error"]) == ("failed", {"type": "Rejected", "message": "too much"})


@pytest.mark.usefixtures("owner")
def test_opening_a_link_changes_nothing() -> None:
    """Opening a link by GET or HEAD decides nothing, because programs open links in emails."""
    task_id = approval()
    link = created(task_id, ["approve"])
    before = ANN.send("GET", f"/v1/tasks/{task_id}").body["version"]
    for headers in ({}, BROWSER):
        for method in ("GET", "HEAD", "GET"):
            assert ANYBODY.send(method, path_of(link), headers=headers).status == 200
    assert ANN.send("GET", f"/v1/tasks/{task_id}").body["version"] == before
    assert used(link).status == 200


@pytest.mark.usefixtures("owner")
def test_a_link_shows_nothing_but_its_task_and_message() -> None:
    """Neither a link's response nor its page shows the task's owner, payload or id."""
    task_id = approval(payload={"secret": "swordfish"}, tags={"team": "hidden-team"})
    link = created(task_id, ["approve"], message="Pay Ann?")
    for headers in ({}, BROWSER):
        text = ANYBODY.send("GET", path_of(link), headers=headers).text
        assert "Pay Ann?" in text
        assert not [each for each in ("swordfish", "hidden-team", task_id, '"ann"', link["id"]) if each in text]


@pytest.mark.usefixtures("owner")
def test_a_changed_or_invalid_token_is_not_found() -> None:
    """A link with a changed or invalid token, or with parts of another link's token, is not found and has no effect."""
    first, second = approval(), approval()
    one, other = (path_of(created(each, ["approve"])).rpartition("/")[2] for each in (first, second))
    prefix, task, id_, secret = one.split("_")
    _, other_task, other_id, other_secret = other.split("_")
    wrong = [
        *("_".join(parts) for parts in [(prefix, other_task, id_, secret), (prefix, task, other_id, secret)]),
        *("_".join(parts) for parts in [(prefix, task, id_, other_secret), (prefix, other_task, other_id, secret)]),
        *(one[:-1], f"{one}0", one[:-1] + ("0" if one[-1] != "0" else "1"), one.upper(), one.lower(), "x", "dtl___"),
        *(f"{one}%00", one.replace("_", "%5F_"), "..", "%2e%2e", "dtl_" + "9" * 10_000, "\N{SNOWMAN}"),
    ]
    for token in wrong:
        for method in ("GET", "POST"):
            answer = ANYBODY.send(method, f"/v1/links/{token}")
            assert (answer.status, answer.body["code"]) in {(404, "link_not_found"), (404, "path_not_found")}, token
    assert {state_of(first), state_of(second)} & {"succeeded", "failed"} == set()


@pytest.mark.usefixtures("owner")
def test_a_link_permits_its_own_actions_only() -> None:
    """A link permits only its own actions: a link to reject cannot approve, and a link to watch can only watch."""
    task_id = approval()
    rejects, watches = created(task_id, ["reject"]), created(task_id, ["watch"])
    for link in (rejects, watches):
        for action in ("approve", "complete", "fail", "watch"):
            answer = used(link, action=action)
            assert (answer.status, answer.body["errors"][0]["field"]) == (422, "action")
    assert used(watches).status == 422
    assert state_of(task_id) not in {"succeeded", "failed"}


@pytest.mark.usefixtures("owner")
def test_the_token_of_a_link_gives_access_to_no_other_path() -> None:
    """A link's token gives access to no other path, neither as a bearer token nor as an id."""
    task_id = approval()
    token = path_of(created(task_id, ["approve"])).rpartition("/")[2]
    for method, path in (
        ("GET", f"/v1/tasks/{task_id}"),
        ("GET", f"/v1/tasks/{task_id}/links"),
        ("POST", f"/v1/tasks/{task_id}/signal"),
        ("GET", "/v1/tasks"),
    ):
        assert ANYBODY.send(method, path, headers={"Authorization": f"Bearer {token}"}).status == 401
    for method in ("PUT", "PATCH", "DELETE"):
        assert ANYBODY.send(method, f"/v1/links/{token}").status == 405


@pytest.mark.usefixtures("owner")
def test_a_link_expires(clock: StandingClock) -> None:
    """An expired link is refused, but is still listed."""
    task_id = approval()
    link = created(task_id, ["approve"], expires_seconds=600)
    clock.at += 600 * SECOND - 1
    assert ANYBODY.send("GET", path_of(link)).status == 200
    clock.at += 1
    for answer in (ANYBODY.send("GET", path_of(link)), used(link)):
        assert (answer.status, answer.body["code"]) == (410, "link_ended")
    assert state_of(task_id) not in {"succeeded", "failed"}
    (listed,) = ANN.send("GET", f"/v1/tasks/{task_id}/links").body["links"]
    assert (listed["id"], listed["ended"]) == (link["id"], "it has expired")


@pytest.mark.usefixtures("owner")
def test_the_item_of_a_link_expires_after_the_link(
    session: FakeSession, environ: dict[str, str], clock: StandingClock
) -> None:
    """A link's item expires some days after the link."""
    created(approval(), ["approve"], expires_seconds=3600)
    (item,) = [
        each for each in stored_in(session, environ[Variable.TABLE]) if each[schema.SORT_KEY]["S"].startswith("link#")
    ]
    assert int(item[schema.TTL]["N"]) * SECOND >= clock.now() + HOUR + LINK_KEPT


@pytest.mark.usefixtures("owner")
def test_only_a_digest_of_a_token_is_stored(session: FakeSession, environ: dict[str, str]) -> None:
    """The table has only a digest of a link's token, so someone who can read the table still cannot use the link."""
    token = path_of(created(approval(), ["approve"])).rpartition("/")[2]
    assert token.rpartition("_")[2] not in json.dumps(stored_in(session, environ[Variable.TABLE]))


@pytest.mark.usefixtures("owner")
def test_a_deleted_link_is_refused() -> None:
    """A deleted link can be neither used nor deleted again, and another owner cannot delete a link."""
    task_id = approval()
    link = created(task_id, ["approve"])
    path = f"/v1/tasks/{task_id}/links/{link['id']}"
    assert BOB.send("DELETE", path).status == 404
    assert ANN.send("DELETE", path).status == 204
    for answer in (used(link), ANYBODY.send("GET", path_of(link))):
        assert (answer.status, answer.body["code"]) == (404, "link_not_found")
    assert ANN.send("DELETE", path).body["code"] == "link_not_found"
    assert ANN.send("GET", f"/v1/tasks/{task_id}/links").body["links"] == []


@pytest.mark.usefixtures("owner")
def test_only_the_owner_of_a_task_can_create_its_links() -> None:
    """Other owners can neither create nor list a task's links, and readers can list but not create links."""
    task_id = approval()
    created(task_id, ["approve"])
    path = f"/v1/tasks/{task_id}/links"
    assert BOB.send("POST", path, {"actions": ["approve"]}).status == 404
    assert BOB.send("GET", path).status == 404
    reader = Gateway({"jwt": {"claims": {"sub": "ann", "scope": "duetime:reader"}}})
    assert reader.send("POST", path, {"actions": ["approve"]}).body["code"] == "role_required"
    (listed,) = reader.send("GET", path).body["links"]
    assert "url" not in listed


@pytest.mark.usefixtures("owner")
@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "actions"),
        ({"actions": []}, "actions"),
        ({"actions": ["approve", "approve"]}, "actions"),
        ({"actions": ["approve", "complete"]}, "actions"),
        ({"actions": ["watch", "approve"]}, "actions"),
        ({"actions": ["delete"]}, "actions[0]"),
        ({"actions": "approve"}, "actions"),
        ({"actions": ["approve"], "expires_seconds": 59}, "expires_seconds"),
        ({"actions": ["approve"], "expires_seconds": 90 * DAY // SECOND + 1}, "expires_seconds"),
        ({"actions": ["approve"], "message": "x" * 501}, "message"),
        ({"actions": ["approve"], "message": "a\nb"}, "message"),
        ({"actions": ["reject"], "takes_payload": True}, "takes_payload"),
        ({"actions": ["watch"], "takes_payload": True}, "takes_payload"),
        ({"actions": ["approve"], "owner": "bob"}, "owner"),
    ],
)
def test_an_error_for_a_new_link_names_unknown_and_contradictory_fields(body: dict[str, Any], field: str) -> None:
    """Unknown and contradictory fields of a new link are refused by name, and no link is created."""
    task_id = approval()
    answer = ANN.send("POST", f"/v1/tasks/{task_id}/links", body)
    assert answer.status == 422
    assert field in {each["field"] for each in answer.body["errors"]}
    assert ANN.send("GET", f"/v1/tasks/{task_id}/links").body["links"] == []


@pytest.mark.usefixtures("owner")
def test_a_link_can_be_created_only_for_a_task_allowing_its_action() -> None:
    """Approval links need an open approval, and completion links need an open task that waits for a notification."""
    plain, waiting = ANN.send("POST", "/v1/tasks", {"type": "echo"}).body["id"], approval()
    for task_id, action in ((plain, "approve"), (plain, "complete"), (waiting, "complete"), (waiting, "fail")):
        answer = ANN.send("POST", f"/v1/tasks/{task_id}/links", {"actions": [action]})
        assert (answer.status, answer.body["code"]) == (409, "state_conflict"), (task_id, action)
    created(plain, ["watch"])
    assert used(created(waiting, ["approve"])).status == 200
    assert ANN.send("POST", f"/v1/tasks/{waiting}/links", {"actions": ["approve"]}).status == 409
    created(waiting, ["watch"])


@pytest.mark.usefixtures("owner")
def test_a_payload_that_a_link_does_not_allow_is_rejected() -> None:
    """A payload that a link does not allow or that is too large is refused by field name, and the link stays valid."""
    task_id = approval()
    link, takes = created(task_id, ["approve"]), created(task_id, ["approve", "reject"], takes_payload=True)
    assert used(link, payload=1).body["errors"][0]["field"] == "payload"
    assert used(takes, action="reject", payload=1).body["errors"][0]["field"] == "payload"
    assert used(takes, action="approve", payload="x" * MAX_RESULT_BYTES).body["errors"][0]["field"] == "payload"
    assert used(takes, action="approve", payload="x").status == 200


@pytest.mark.usefixtures("owner")
def test_a_link_that_is_used_before_the_due_time_stays_valid(clock: StandingClock) -> None:
    """Using a link before its task's due time is a conflict, but the link can be used later."""
    task_id = approval(delay_seconds=3600)
    link = created(task_id, ["approve"])
    assert ANYBODY.send("GET", path_of(link)).body["is_awaited"] is False
    assert used(link).body["code"] == "state_conflict"
    clock.at += HOUR
    assert ANYBODY.send("GET", path_of(link)).body["is_awaited"] is True
    assert used(link).status == 200


@pytest.mark.usefixtures("owner")
def test_the_first_of_two_links_decides() -> None:
    """After a task has been approved with a link, rejecting the task with another link is a conflict."""
    task_id = approval()
    yes, no = created(task_id, ["approve"]), created(task_id, ["reject"])
    assert used(yes).status == 200
    assert used(no).body["code"] == "state_conflict"
    assert state_of(task_id) == "succeeded"


@pytest.mark.usefixtures("owner")
def test_a_task_has_a_limited_number_of_links() -> None:
    """If a task has the maximum number of links, a link must be deleted before another link can be created."""
    task_id = approval()
    for _ in range(MAX_LINKS):
        last = created(task_id, ["watch"])
    path = f"/v1/tasks/{task_id}/links"
    assert ANN.send("POST", path, {"actions": ["watch"]}).body["code"] == "links_full"
    assert ANN.send("DELETE", f"{path}/{last['id']}").status == 204
    created(task_id, ["watch"])


@pytest.mark.usefixtures("owner")
def test_deleting_a_task_deletes_its_links(session: FakeSession, environ: dict[str, str]) -> None:
    """Deleting a task deletes its links."""
    task_id = str(ANN.send("POST", "/v1/tasks", {"type": "echo", "delay_seconds": 3600}).body["id"])
    link = created(task_id, ["watch"])
    assert ANN.send("POST", f"/v1/tasks/{task_id}/cancel").status == 200
    assert ANN.send("DELETE", f"/v1/tasks/{task_id}").status == 204
    assert ANYBODY.send("GET", path_of(link)).status == 404
    assert not [
        each for each in stored_in(session, environ[Variable.TABLE]) if each[schema.SORT_KEY]["S"].startswith("link#")
    ]


@pytest.mark.usefixtures("owner")
def test_the_page_of_a_link_decides_without_scripts() -> None:
    """A link's page is a form without scripts, with a button for each action and fields for text."""
    task_id = approval()
    link = created(task_id, ["approve", "reject"], message="Pay £500 to Ann?", takes_payload=True)
    page = ANYBODY.send("GET", path_of(link), headers=BROWSER)
    assert page.headers["Content-Type"].startswith("text/html")
    assert all(each in page.text for each in ("<form", 'value="approve"', 'value="reject"', "Pay £500 to Ann?"))
    assert all(f'name="{field}"' in page.text for field in ("payload", "reason"))
    assert "<script" not in page.text
    typed = urlencode({"action": "approve", "payload": "up to 500", "reason": "as\r\nagreed"})
    done = ANYBODY.send("POST", path_of(link), headers=FORM, raw=typed)
    assert (done.status, "Approved" in done.text, "<form" in done.text) == (200, True, False)
    assert ANN.send("GET", f"/v1/tasks/{task_id}").body["result"] == "up to 500"
    again = ANYBODY.send("POST", path_of(link), headers=FORM, raw=typed)
    assert (again.status, "cannot be used" in again.text) == (410, True)


@pytest.mark.usefixtures("owner")
def test_the_page_of_a_link_keeps_its_address_secret() -> None:
    """The headers of a link's page prevent browsers, caches and search engines from leaking its URL."""
    link = created(approval(name="<script>alert(1)</script>", type="pay"), ["watch"], message='"><img src=x>')
    page = ANYBODY.send("GET", path_of(link), headers=BROWSER)
    assert page.headers["Referrer-Policy"] == "no-referrer"
    assert page.headers["Cache-Control"] == "no-store"
    assert page.headers["X-Robots-Tag"].startswith("noindex")
    assert page.headers["Content-Security-Policy"].startswith("default-src 'none'; style-src 'sha256-")
    assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]
    assert not [each for each in ("<script>", "<img", "http://", "https://") if each in page.text]
    assert ANYBODY.send("GET", f"{path_of(link)}0", headers=BROWSER).headers["Referrer-Policy"] == "no-referrer"


@pytest.mark.usefixtures("owner")
@pytest.mark.parametrize("body", ["a=%ff", "&".join(f"a{n}=1" for n in range(20)), "action=launch", "payload=1", "x=1"])
def test_a_malformed_form_is_rejected(body: str) -> None:
    """A malformed form on a link's page returns a client error, and the task does not change."""
    task_id = approval()
    link = created(task_id, ["approve"])
    assert 400 <= ANYBODY.send("POST", path_of(link), headers=FORM, raw=body).status < 500
    assert state_of(task_id) not in {"succeeded", "failed"}


def test_the_audit_log_names_the_link_but_not_the_token(
    owner: Gateway, environ: dict[str, str], compose: Callable[[], None], session: FakeSession
) -> None:
    """The audit log names the task and the link, but has no token.

    Wrong tokens, which anyone can send, are not recorded.
    """
    environ |= {Variable.AUDIT_LOG_GROUP: "audit"}
    compose()
    task_id = approval()
    link = created(task_id, ["approve"])
    token = path_of(link).rpartition("/")[2]
    assert used(link, reason="fine").status == 200
    assert used(link).status == 410
    assert owner.send("POST", f"/v1/links/{token[:-1]}x").status == 404
    records = [json.loads(line) for lines in session.logs.lines.values() for line in lines]
    of_holders = [each for each in records if each["operation"] == "useTaskLink"]
    assert [(each["owner"], each["caller"], each["status"], each["reason"]) for each in of_holders] == [
        ("ann", f"link {link['id']}", 200, "fine"),
        ("ann", f"link {link['id']}", 410, ""),
    ]
    assert {each["subject"] for each in of_holders} == {f"/v1/tasks/{task_id}/links/{link['id']}"}
    assert token not in json.dumps(records)


def test_a_link_is_limited_by_the_quota_of_its_owner(
    owner: Gateway, environ: dict[str, str], compose: Callable[[], None]
) -> None:
    """Opening a link uses the owner's read quota, and is refused if the quota is exceeded."""
    environ |= {Variable.QUOTAS: json.dumps({"reads_per_second": 2}), Variable.SUMMARY_SPREAD: "1"}
    compose()
    task_id = approval()
    link = created(task_id, ["approve"])
    answers = [ANYBODY.send("GET", path_of(link)) for _ in range(60)]
    assert {each.status for each in answers} == {200, 429}
    assert used(link).status == 429
    assert owner.send("GET", f"/v1/tasks/{task_id}").status == 429


@pytest.mark.usefixtures("owner")
def test_the_page_says_whether_a_link_may_be_used_again() -> None:
    """A link's page says whether to try again later, or that the link cannot be used."""
    link = created(approval(delay_seconds=3600), ["approve"])
    early = ANYBODY.send("POST", path_of(link), headers=FORM, raw="action=approve")
    assert (early.status, "try again" in early.text) == (409, True)
    wrong = ANYBODY.send("GET", f"{path_of(link)}0", headers=BROWSER)
    assert (wrong.status, "cannot be used" in wrong.text, "try again" in wrong.text) == (404, True, False)
