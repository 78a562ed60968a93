"""Tests of `GET /v1/settings`, which shows what the deployment allows its callers."""

from __future__ import annotations

from duetime.domain.callers import Caller, OwnerPatterns, Reservations, Role
from duetime.domain.tasks.allowed_targets import TargetRules
from duetime.domain.tasks.pull_leases import Pullers
from duetime.environment_variables import Variable
from duetime.settings import Settings
from functions.api.deployment_settings import _settings
from tests.scenarios.scenario import Scenario

JWT: dict[str, str] = {
    Variable.AUTHENTICATION: "jwt",
    Variable.OPERATORS: "grace",
    Variable.PULLERS: '{"render": ["ada"], "mail": ["*"]}',
    Variable.HTTP_ALLOW: "10.0.0.7",
    Variable.AWS_TARGETS: "arn:aws:sqs:eu-west-1:123456789012:a arn:aws:sqs:eu-west-1:123456789012:b",
    Variable.ARCHIVE_BUCKET: "archive",
    Variable.RETENTION_DAYS: "7",
    Variable.STACK: "duetime-prod",
    Variable.WORKER_LOGS: "worker-logs",
    Variable.REGION: "eu-west-1",
    Variable.HTTP_SECRETS: '{"crm": {"arn": "arn", "hosts": ["crm.example"], "owners": ["bob"]}}',
}
ADA = Caller("ada", frozenset({Role.WRITER}))
GRACE = Caller("grace", frozenset({Role.OPERATOR}))


def test_the_settings_show_a_callers_own_rights() -> None:
    """The settings show the caller's own rights, types, targets and logs, but not other callers' rights."""
    found = _settings(Settings(JWT), ADA, ["ada"], TargetRules(handled={"report", "canary"}))
    assert (found["owner"], found["is_operator"], found["authentication"]) == ("ada", False, "jwt")
    assert found["handler_types"] == ["canary", "report"]
    assert found["pulled_types"] == [{"type": "mail", "may_lease": True}, {"type": "render", "may_lease": True}]
    assert (found["is_archived"], found["is_counted"], found["retention_days"]) == (True, False, 7)
    assert found["logs"] == {"stack": "duetime-prod", "region": "eu-west-1", "log_group": "worker-logs"}
    other = _settings(Settings(JWT), GRACE, ["grace"], TargetRules())
    assert (other["is_operator"], other["handler_types"]) == (True, None)
    assert other["pulled_types"][1] == {"type": "render", "may_lease": False}
    assert "ada" not in str(other)


def test_operators_see_the_secrets_of_all_owners() -> None:
    """Operators see the secrets of all owners, and other callers see only the secrets that they may use.

    The owners of secrets are not shown.
    """
    assert _settings(Settings(JWT), ADA, ["ada"], TargetRules())["http_secrets"] == []
    found = _settings(Settings(JWT), GRACE, ["grace"], TargetRules())
    assert found["http_secrets"] == [{"name": "crm", "hosts": ["crm.example"]}]
    assert (found["roles"], "bob" in str(found)) == (["reader", "writer", "operator"], False)


def test_the_settings_list_the_owners_for_which_a_caller_may_act() -> None:
    """The settings list the owners for which a caller may act: the caller and its teams in settings and token."""
    with Scenario() as account:
        account.environ |= {Variable.TEAMS: '{"b": ["ann"], "c": ["bob"]}'}
        found = account.ask("GET", "/v1/settings", headers={"X-Duetime-Owner": "ann"}).body
        assert (found["owner"], found["owners"]) == ("ann", ["ann", "b", "local"])
        assert found["roles"] == ["reader", "writer", "worker", "operator", "admin"]


def test_types_and_resources_reserved_for_others_are_not_listed() -> None:
    """Types and resources that are reserved for other owners are not listed, unless the caller may lease the type."""
    rules = TargetRules(
        handled={"report", "billing.invoice"},
        type_owners=Reservations({"billing.*": OwnerPatterns(("bil*",)), "render": OwnerPatterns(("bill",))}),
        arn_owners=Reservations({"*:b": OwnerPatterns(("bill",))}),
    )
    found = {
        owner: _settings(Settings(JWT), Caller(owner, ADA.roles), [owner], rules) for owner in ("ada", "bill", "carl")
    }
    assert found["ada"]["handler_types"] == ["report"]
    assert found["bill"]["handler_types"] == ["billing.invoice", "report"]
    assert [len(found[owner]["aws_targets"]) for owner in found] == [1, 2, 1]
    assert {owner: [each["type"] for each in one["pulled_types"]] for owner, one in found.items()} == {
        "ada": ["mail", "render"],
        "bill": ["mail", "render"],
        "carl": ["mail"],
    }
    operator = _settings(Settings(JWT), GRACE, ["grace"], rules)
    assert operator["handler_types"] == ["billing.invoice", "report"]
    assert (len(operator["aws_targets"]), len(operator["pulled_types"])) == (2, 2)


def test_the_settings_show_no_region_without_a_log_group() -> None:
    """Without a log group, the settings show no region, and without a stack they show no logs."""
    local = {name: value for name, value in JWT.items() if name != Variable.WORKER_LOGS}
    assert _settings(Settings(local), ADA, ["ada"], TargetRules())["logs"] == {
        "stack": "duetime-prod",
        "region": None,
        "log_group": None,
    }
    unknown = {name: value for name, value in local.items() if name != Variable.STACK}
    assert _settings(Settings(unknown), ADA, ["ada"], TargetRules())["logs"] is None


def test_the_settings_are_read_over_rest() -> None:
    """The settings can be read over REST, without query parameters."""
    with Scenario() as account:
        found = account.ask("GET", "/v1/settings")
        assert (found.status, found.body["owner"]) == (200, "local")
        assert account.ask("GET", "/v1/settings", query="all=true").status == 400


def test_a_type_can_be_pulled_by_the_callers_that_the_settings_name() -> None:
    """A type can be pulled by the callers that the settings name, or by every caller if the settings name `*`."""
    pullers = Pullers({"mail": OwnerPatterns(("*",)), "render": OwnerPatterns(("ada",))})
    assert pullers.allow("grace", "mail")
    assert not pullers.allow("grace", "render")
    assert not pullers.allow("grace", "unheard-of")
