"""Tests of roles: each operation declares a role, and callers without that role are refused before data is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.contract.openapi.document import OPERATIONS
from duetime.domain.callers import Role
from duetime.environment_variables import Variable
from tests.functions.api.gateway import Gateway

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.contract.http.operation import Operation


@pytest.fixture
def secured(environ: dict[str, str], compose: Callable[[], None]) -> None:
    """Compose a deployment with tokens, with `ops` as an operator and `root` as an administrator."""
    environ |= {Variable.AUTHENTICATION: "jwt", Variable.OPERATORS: "ops", Variable.ADMINS: "root"}
    environ[Variable.PULLERS] = '{"render": ["*"]}'
    compose()


CALLER = "ann"


def scoped(scope: str | None, sub: str = CALLER, claim: str = "scope") -> Gateway:
    """A caller whose token has this scope."""
    return Gateway({"jwt": {"claims": {"sub": sub} if scope is None else {"sub": sub, claim: scope}}})


def path_of(operation: Operation[Any]) -> str:
    """The path of an operation, for resources that do not exist, or for the caller's own switch."""
    names = {"task_id": "0" * 26, "topology_id": "0" * 26, "operation_id": "0" * 26, "scope": "owner"}
    parts = [names.get(part[1:-1], CALLER) if part.startswith("{") else part for part in operation.path.split("/")]
    return "/".join(parts)


def codes_of(caller: Gateway) -> dict[str, str]:
    """For each operation, the error code if the caller lacks the role, or otherwise an empty string."""
    found = {}
    for operation in OPERATIONS:
        answer = caller.send(operation.method, path_of(operation))
        code = answer.body.get("code", "") if answer.status == 403 else ""
        found[operation.id] = code if code in {"role_required", "operator_required"} else ""
    return found


@pytest.mark.usefixtures("secured")
@pytest.mark.parametrize("role", Role)
def test_an_operation_is_refused_unless_the_role_includes_the_declared_role(role: Role) -> None:
    """An operation is refused if and only if the caller's role does not include the operation's declared role."""
    found = codes_of(scoped(f"openid duetime:{role}"))
    for operation in OPERATIONS:
        refusal = "operator_required" if operation.needs is Role.OPERATOR else "role_required"
        is_allowed = operation.is_public or operation.needs in role.included
        assert found[operation.id] == ("" if is_allowed else refusal), operation.id


@pytest.mark.usefixtures("secured")
def test_a_token_without_duetime_scopes_is_not_limited() -> None:
    """A token without duetime scopes permits everything except operations on all owners.

    The settings can permit these operations, too.
    """
    plain = codes_of(scoped("openid profile"))
    assert {plain[one.id] for one in OPERATIONS if one.needs not in {Role.OPERATOR, Role.ADMIN}} == {""}
    assert plain["getDispatchStatus"] == "operator_required"
    assert codes_of(scoped(None, "ops"))["getDispatchStatus"] == ""
    assert set(codes_of(scoped(None, "root")).values()) == {""}


@pytest.mark.usefixtures("secured")
def test_an_administrator_can_read_but_not_change_every_owners_resources() -> None:
    """An administrator can read but not change every owner's resources.

    An operator can neither read nor change them.
    """
    owner = {"X-Duetime-Owner": "ann"}
    task = scoped(None).send("POST", "/v1/tasks", {"type": "a", "allow_unknown_type": True}).body["id"]
    root = scoped(None, "root")
    for operation in OPERATIONS:
        answer = root.send(operation.method, path_of(operation), headers=owner)
        is_allowed = operation.is_public or operation.needs is Role.READER
        assert (answer.status == 403) != is_allowed, operation.id
    assert root.send("GET", f"/v1/tasks/{task}", headers=owner).body["id"] == task
    assert root.send("GET", f"/v1/tasks/{task}").status == 404
    assert scoped("duetime:admin", "eve").send("GET", f"/v1/tasks/{task}", headers=owner).status == 200
    for refused in (scoped(None, "ops"), scoped("duetime:reader", "root"), scoped("duetime:operator", "eve")):
        answer = refused.send("GET", f"/v1/tasks/{task}", headers=owner)
        assert (answer.status, answer.body["code"]) == (403, "owner_forbidden")
        assert refused.send("DELETE", f"/v1/tasks/{task}", headers=owner).status == 403


@pytest.mark.usefixtures("secured")
def test_a_scope_limits_even_an_operator() -> None:
    """A token with the scope `reader` permits even an operator only to read.

    The scope `operator` makes everyone an operator.
    """
    assert codes_of(scoped("duetime:reader", "ops"))["getDispatchStatus"] == "operator_required"
    assert codes_of(scoped("duetime:operator"))["getDispatchStatus"] == ""
    put = scoped("duetime:operator").send("PUT", "/v1/switches/all/all", {"stopped": True})
    assert put.status == 200


@pytest.mark.usefixtures("secured")
@pytest.mark.parametrize(
    ("scope", "claim", "allowed"),
    [
        ("duetime/reader", "scope", True),
        ("duetime:reader", "scp", True),
        ("[duetime:reader other]", "scp", True),
        ("duetime:raeder", "scope", False),
        ("duetime:raeder duetime:reader", "scope", True),
        ("duetime:", "scope", False),
        ("xduetime:admin", "scope", True),
    ],
)
def test_a_misspelled_scope_grants_no_role(scope: str, claim: str, allowed: object) -> None:
    """A misspelled duetime scope grants no role, instead of leaving its caller unlimited."""
    assert (scoped(scope, claim=claim).send("GET", "/v1/tasks").status == 200) == allowed
    assert scoped(scope, claim=claim).send("GET", "/v1/dispatch").status == 403


@pytest.mark.usefixtures("secured")
def test_a_caller_with_the_worker_role_creates_tasks_only_with_a_lease() -> None:
    """A caller with the role `worker` can create tasks only with a lease."""
    worker = scoped("duetime:worker")
    assert worker.send("POST", "/v1/tasks", {"type": "a"}).problem["code"] == "role_required"
    forged = worker.send("POST", "/v1/tasks", {"type": "a"}, {"X-Duetime-Lease": "none"})
    assert (forged.status, forged.problem["code"]) == (404, "lease_not_found")
    refused = worker.send("GET", "/v1/tasks", headers={"X-Duetime-Lease": "none"})
    assert refused.problem["code"] == "role_required"
    reader = scoped("duetime:reader").send("POST", "/v1/tasks", {"type": "a"}, {"X-Duetime-Lease": "none"})
    assert reader.problem["code"] == "role_required"
