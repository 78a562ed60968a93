from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.limits import MAX_QUOTA
from duetime.domain.quotas import Quotas
from duetime.domain.tasks.task_options import Priority
from duetime.domain.times import DAY, SECOND
from duetime.settings import Settings
from duetime_cdk import environments
from duetime_cdk.environments import Environment, Pollers, UnknownEnvironment, WorkerBatch
from duetime_cdk.errors import UnsafeEnvironment
from infra import ROOT
from infra.environments import ENVIRONMENTS, environment_named
from tests.infra.synthesis import Synthesis, add_stack, new_app

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime_cdk.layers.build import Layers


def test_the_error_for_an_unknown_environment_lists_the_valid_names() -> None:
    """A misspelled environment is refused, and the error lists the valid names."""
    with pytest.raises(UnknownEnvironment, match=r"'pord'.*dev, local, prod, staging"):
        environment_named("pord")


@pytest.mark.parametrize("environment", ENVIRONMENTS.values(), ids=lambda environment: environment.name)
def test_settings_are_within_the_limits_of_aws(environment: Environment) -> None:
    """Every environment's concurrency limits and timeouts are within AWS's limits."""
    assert all(2 <= environment.concurrency[priority] <= 1000 for priority in Priority)
    assert all(0 < size.timeout_seconds <= 900 for size in environment.sizes.values())
    assert all(128 <= size.memory_mb <= 10_240 for size in environment.sizes.values())
    assert 1 <= environment.intake_batch_size <= 10_000
    assert environment.intake_batch_seconds in range(1 if environment.intake_batch_size > 10 else 0, 301)
    assert 2 <= environment.intake_concurrency <= 1000


ACCOUNT = 1_000
"""The default limit on concurrent executions of an account that is not new (Source: AWS Lambda quotas)."""


@pytest.mark.parametrize("name", ["staging", "prod"])
def test_central_functions_have_reserved_concurrency(synthesis_of: Callable[[str], Synthesis], name: str) -> None:
    """Even if all workers are busy, six other functions, such as the trigger and the API, have reserved concurrency."""
    synthesis = synthesis_of(name)
    reserved = {
        function: body.get("ReservedConcurrentExecutions", 0) for function, body in synthesis.functions().items()
    }
    kept = {function for function, number in reserved.items() if number}
    assert kept == {"trigger", "api", "egress", "topology", "bulk", "deadletter"}
    assert synthesis.environment.long_polls <= reserved["api"] / 2
    capped = [
        mapping["ScalingConfig"]["MaximumConcurrency"]
        for mapping in synthesis.properties("AWS::Lambda::EventSourceMapping").values()
        if synthesis.function_named(mapping["FunctionName"]) == "worker"
    ]
    assert len(capped) == len(Priority)
    assert sum(reserved.values()) + sum(capped) < ACCOUNT
    # Lambda refuses reservations that leave less than 100 unreserved executions.
    assert ACCOUNT - sum(reserved.values()) >= max(100, sum(capped))
    # Each worker that makes a call also occupies the egress; up to two thirds of the workers make calls at once.
    assert reserved["egress"] >= sum(capped) * 2 / 3
    assert synthesis.environment.concurrency_needed <= ACCOUNT


def test_a_new_account_can_deploy_the_trial_environment(dev: Synthesis) -> None:
    """A new account may have only 10 executions, so `dev` reserves none of them; waiting requests use at most half."""
    assert not any("ReservedConcurrentExecutions" in body for body in dev.functions().values())
    assert dev.functions()["api"]["Environment"]["Variables"]["DUETIME_LONG_POLLS"] == "5"


@pytest.mark.parametrize(("name", "number"), [("prod", 150), ("dev", 100), ("dev", 0)])
def test_waiting_requests_must_be_fewer_than_the_executions_of_the_api(name: str, number: int) -> None:
    """A number of waiting requests that is zero or not below the API's executions is refused before the deployment."""
    with pytest.raises(UnsafeEnvironment, match="`long_polls` must be"):
        replace(environment_named(name), long_polls=number)


def test_the_deployment_page_states_the_concurrency_of_each_environment() -> None:
    """The table on the page states the concurrent executions that each environment's settings need in total."""
    page = (ROOT / "docs" / "how-to" / "deploy.md").read_text()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("|")]
    rows = {name: figures for name, *figures in cells}
    found = [environment_named(name) for name in ("dev", "staging", "prod")]
    assert rows["total needed"] == [str(each.concurrency_needed) for each in found]


def test_only_the_api_and_the_archive_get_the_redaction_setting(layers: Layers, tmp_path: Path) -> None:
    """Only the API and the archive, whose output people read, get the setting for redaction."""
    environment = replace(environment_named("dev"), redact={"pay.*": ("card", "/customer/*")}, archive_days=30)
    functions = Synthesis(environment, layers, tmp_path).functions()
    given = {name: each["Environment"]["Variables"].get("DUETIME_REDACT") for name, each in functions.items()}
    text = '{"pay.*":["card","/customer/*"]}'
    assert {name: each for name, each in given.items() if each is not None} == {"api": text, "archive": text}


def test_functions_that_apply_the_retention_by_type_get_the_setting(layers: Layers, tmp_path: Path) -> None:
    """Functions with retention by type get the setting; S3 uses the longest retention, and queues use the shortest."""
    by_type = {"audit.*": 400, "ping": 2}
    environment = replace(environment_named("dev"), retention_days_by_type=by_type, intake_owner="a")
    made = Synthesis(environment, layers, tmp_path)
    given = {name: each["Environment"]["Variables"] for name, each in made.functions().items()}
    keeping = {name for name, variables in given.items() if "DUETIME_RETENTION_DAYS" in variables}
    assert len(keeping) > 5
    for name, variables in given.items():
        expected = '{"audit.*":400,"ping":2}' if name in keeping else None
        assert variables.get("DUETIME_RETENTION_DAYS_BY_TYPE") == expected, name
    assert Settings(given["worker"]).retention.of("ping") == 2 * DAY
    kept = [
        rule["ExpirationInDays"]
        for bucket in made.properties("AWS::S3::Bucket").values()
        for rule in bucket["LifecycleConfiguration"]["Rules"]
        if "ExpirationInDays" in rule
    ]
    assert max(kept) > 400
    (intake,) = [each for id_, each in made.properties("AWS::SQS::Queue").items() if id_.startswith("IntakeQueue")]
    assert intake["MessageRetentionPeriod"] == 2 * DAY // SECOND


def test_functions_that_apply_quotas_get_them_as_json(dev: Synthesis, layers: Layers, tmp_path: Path) -> None:
    """Quotas are passed as JSON that omits unset values; without the setting, the API's variable is empty."""
    quotas = Quotas(creates_per_second=20, concurrent_attempts=50)
    functions = Synthesis(replace(environment_named("dev"), quotas=quotas), layers, tmp_path).functions()
    given = {name: each["Environment"]["Variables"].get("DUETIME_QUOTAS") for name, each in functions.items()}
    told = {name for name, value in given.items() if value is not None}
    assert told == {"api", "bulk", "topology", "trigger", "worker"}
    assert {given[name] for name in told} == {'{"creates_per_second": 20, "concurrent_attempts": 50}'}
    assert dev.functions()["api"]["Environment"]["Variables"]["DUETIME_QUOTAS"] == ""


@pytest.mark.parametrize(
    "settings",
    [
        {"quotas": Quotas(schedules=0)},
        {"quotas": Quotas(reads_per_second=MAX_QUOTA + 1)},
        {"quotas": Quotas(open_tasks=5), "summary_spread": 0},
        {"quotas": Quotas(open_tasks=5), "broadcast_batch_seconds": 30},
    ],
)
def test_quotas_that_cannot_be_enforced_are_rejected(settings: dict[str, Any]) -> None:
    """An invalid limit is refused, and a limit on open tasks if their number would not be known in time."""
    with pytest.raises(UnsafeEnvironment, match="`quotas`"):
        replace(environment_named("dev"), **settings)


@pytest.mark.parametrize(
    ("settings", "seconds"),
    [
        ({}, 30),
        ({"event_bus": "default"}, 5),
        ({"console": True, "api_keys": True}, 5),
        ({"quotas": Quotas(open_tasks=5)}, 5),
        ({"quotas": Quotas(schedules=5)}, 30),
        ({"event_bus": "default", "broadcast_batch_seconds": 0}, 0),
    ],
)
def test_the_stream_window_is_shorter_if_changes_are_awaited(settings: dict[str, Any], seconds: int) -> None:
    """The stream window defaults to 30 s, or to 5 s if changes are shown, forwarded or counted."""
    assert replace(environment_named("prod"), **settings).stream_seconds == seconds


@pytest.mark.parametrize("name", ["dev", "prod"])
def test_a_deployment_reports_the_account_limit_that_it_requires(layers: Layers, tmp_path: Path, name: str) -> None:
    """Before a deployment can fail, a message names the required limit, where to look it up, and what to do."""
    environment = environment_named(name)
    stack = add_stack(new_app(tmp_path), environment, layers)
    # `Annotations.find_info` is not used, because jsii cannot create the type of its entries in every order of tests.
    (text,) = [str(each.data) for each in stack.node.metadata if "concurrent Lambda executions" in str(each.data)]
    assert f" {environment.concurrency_needed} concurrent" in text
    assert ("lower `reserved`" in text) == bool(environment.reserved)


@pytest.mark.parametrize(
    ("pulled", "reason"),
    [
        ({"a b": ("*",)}, "cannot be a task's type"),
        ({"report": ()}, "say who may pull 'report'"),
        ({"report": ("a b",)}, "say who may pull 'report'"),
    ],
)
def test_invalid_pulled_types_and_pullers_are_rejected(pulled: dict[str, tuple[str, ...]], reason: str) -> None:
    """An invalid type, a type without pullers, and a puller that cannot be any caller's name are refused by name."""
    with pytest.raises(UnsafeEnvironment, match=reason):
        Environment(name="dev", pulled_types=pulled)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"type_owners": {"billing *": ("*",)}}, "'billing \\*' in `type_owners` can match nothing"),
        ({"type_owners": {"billing.*": ()}}, "`type_owners` needs the owners of 'billing"),
        ({"type_owners": {"billing.*": "123456789012:role/Billing"}}, "`type_owners` needs the owners of 'billing"),
        ({"retention_days": 1}, "`retention_days` must be 2 to 3653, not 1"),
        ({"retention_days": 3_654}, "`retention_days` must be 2 to 3653, not 3654"),
        ({"retention_days_by_type": {"ping": 0}}, "`retention_days_by_type` must be 2 to 3653, not 0"),
        ({"archive_days_by_type": {"ping": -1}}, "`archive_days_by_type` must be 0 to 3653, not -1"),
        ({"redact": {"pi ng": ("card",)}}, "'pi ng' in `redact` can match nothing"),
        *(
            ({"redact": {"ping": wrong}}, "`redact` for 'ping' must be a list of names, pointers such as")
            for wrong in ("card", ("",), ("/",), ("a", "/a//b"), ("/a/",))
        ),
        ({"retention_days_by_type": {"pi ng": 5}}, "'pi ng' in `retention_days_by_type` can match nothing"),
        ({"target_owners": {"billing": ("*",)}}, "'billing' in `target_owners` can match nothing"),
        ({"target_owners": {"arn:aws:sqs:*:billing": ("a b",)}}, "`target_owners` needs the owners of 'arn"),
    ],
)
def test_settings_without_effect_or_out_of_range_are_rejected(settings: dict[str, Any], reason: str) -> None:
    """A pattern that matches nothing, invalid owners or redactions, and a retention out of range are refused."""
    with pytest.raises(UnsafeEnvironment, match=reason):
        replace(environment_named("dev"), **settings)


def test_a_lease_that_cannot_be_renewed_in_time_is_rejected() -> None:
    """A worker's process must end before its lease expires, so a lease must be long enough for heartbeats."""
    assert replace(environment_named("dev"), lease_seconds=15).lease_seconds == 15
    with pytest.raises(UnsafeEnvironment, match="a lease of 14 s"):
        replace(environment_named("dev"), lease_seconds=14)


def test_a_priority_with_provisioned_pollers_has_no_concurrency_limit(layers: Layers, tmp_path: Path) -> None:
    """A mapping has either pollers or a concurrency limit; the account limit must cover ten invocations per poller."""
    environment = replace(environment_named("staging"), provisioned_pollers={Priority.HIGH: Pollers(20, 200)})
    synthesis = Synthesis(environment, layers, tmp_path)
    of_worker = [
        (mapping.get("ScalingConfig"), mapping.get("ProvisionedPollerConfig"))
        for mapping in synthesis.properties("AWS::Lambda::EventSourceMapping").values()
        if synthesis.function_named(mapping["FunctionName"]) == "worker"
    ]
    assert sorted(of_worker, key=str) == [
        (None, {"MinimumPollers": 20, "MaximumPollers": 200}),
        ({"MaximumConcurrency": 100}, None),
        ({"MaximumConcurrency": 20}, None),
    ]
    assert environment.concurrency_needed == environment_named("staging").concurrency_needed - 100 + 2_000


@pytest.mark.parametrize(("minimum", "maximum"), [(1, 10), (201, 400), (20, 10), (2, 2_001)])
def test_invalid_numbers_of_pollers_are_rejected(minimum: int, maximum: int) -> None:
    """At least 2 and at most 200 pollers are always ready, and the maximum is 2,000."""
    with pytest.raises(UnsafeEnvironment, match=f"pollers of high tasks.*not {minimum} to {maximum}"):
        replace(environment_named("dev"), provisioned_pollers={Priority.HIGH: Pollers(minimum, maximum)})


def test_a_priority_can_have_larger_batches_with_a_window(layers: Layers, tmp_path: Path) -> None:
    """The setting for larger batches changes one priority; other priorities keep batches of ten without a window."""
    environment = replace(environment_named("dev"), worker_batches={Priority.LOW: WorkerBatch(size=100, seconds=5)})
    synthesis = Synthesis(environment, layers, tmp_path)
    of_worker = [
        (mapping["BatchSize"], mapping["MaximumBatchingWindowInSeconds"])
        for mapping in synthesis.properties("AWS::Lambda::EventSourceMapping").values()
        if synthesis.function_named(mapping["FunctionName"]) == "worker"
    ]
    assert sorted(of_worker) == [(10, 0), (10, 0), (100, 5)]


@pytest.mark.parametrize(("size", "seconds"), [(0, 1), (101, 1), (100, 0), (100, 301)])
def test_invalid_worker_batches_are_rejected(size: int, seconds: int) -> None:
    """A batch of more than ten messages requires a batching window, and each task in a batch requires a thread."""
    with pytest.raises(UnsafeEnvironment, match=f"workers of low tasks.*not {size} after {seconds}"):
        replace(environment_named("dev"), worker_batches={Priority.LOW: WorkerBatch(size, seconds)})


@pytest.mark.parametrize("shards", [0, 65_537])
def test_too_many_shards_are_rejected(shards: int) -> None:
    """The number of shards is limited because a task id has sixteen bits for its shard."""
    with pytest.raises(UnsafeEnvironment, match=f"`shards` must be 1 to .*, not {shards}"):
        replace(environment_named("dev"), shards=shards)


@pytest.mark.parametrize("name", ["", "two words", "a\tb", "a#b"])
def test_an_invalid_operator_identity_is_rejected(name: str) -> None:
    """An identity that is empty or has white space or `#` is refused; functions split their list at spaces."""
    with pytest.raises(UnsafeEnvironment, match="operator"):
        replace(environment_named("dev"), operators=("123456789012:role/Ops", name))
    assert environment_named("prod").operators == ()
    assert environment_named("local").operators == ("*",)


def test_teams_require_valid_owners_and_members() -> None:
    """A name that cannot own tasks, a string for members, or a claim without tokens is refused by its setting."""
    dev = environment_named("dev")
    assert replace(dev, teams={"billing": ("123456789012:role/Billing",)}).teams
    refused: list[Any] = [{"a b": ("ann",)}, {"billing": ("a#b",)}, {"billing": "ann"}]
    for teams in refused:
        with pytest.raises(UnsafeEnvironment, match="`teams`"):
            replace(dev, teams=teams)
    with pytest.raises(UnsafeEnvironment, match="`teams_claim`"):
        replace(dev, teams_claim="groups")
    with pytest.raises(UnsafeEnvironment, match="operator"):
        replace(dev, admins=("two words",))
    assert (environment_named("prod").admins, environment_named("local").admins) == ((), ("*",))


def test_every_setting_is_documented() -> None:
    """Each field of an environment is followed by a docstring that says what the field sets."""
    source = Path(environments.__file__)
    lines = source.read_text().splitlines()
    undocumented = [
        field.name
        for field in fields(Environment)
        if not any(
            line.startswith(f"    {field.name}: ") and _documented(lines[number + 1 :])
            for number, line in enumerate(lines)
        )
    ]
    assert undocumented == []


def _documented(following: list[str]) -> bool:
    """Return whether the next line after a field and its default begins a docstring."""
    first = next(line for line in following if not line.startswith("        ") and line.strip() != ")")
    return first.startswith('    """')


def test_the_outputs_of_the_stack_have_the_expected_names(every: Synthesis) -> None:
    """The outputs have the names that a client and the local stack expect."""
    assert {
        "ApiUrl",
        "ApiId",
        "TableName",
        "BucketName",
        "QueueUrlHigh",
        "QueueUrlNormal",
        "QueueUrlLow",
        "DeadLetterQueueUrl",
        "ApiFunctionName",
        "TriggerFunctionName",
        "WorkerFunctionName",
        "DeadletterFunctionName",
    } <= set(every.template["Outputs"])


def test_stacks_of_two_environments_have_different_fixed_names(every: Synthesis) -> None:
    """Fixed names begin with the stack's name, so that two stacks fit into an account."""
    named = {
        value
        for body in every.template["Resources"].values()
        if body["Type"] != "AWS::Lambda::Alias"
        for key, value in body.get("Properties", {}).items()
        if key in {"Name", "TableName", "BucketName", "QueueName", "FunctionName", "RoleName", "LogGroupName"}
        if isinstance(value, str)
    }
    assert {name for name in named if not name.startswith(f"duetime-{every.environment.name}")} == set()
