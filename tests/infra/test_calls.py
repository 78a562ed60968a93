from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from duetime.environment_variables import Variable
from duetime_cdk.errors import UnsafeEnvironment
from duetime_cdk.job_events import wildcard_of
from infra.environments import environment_named
from tests.infra.synthesis import Synthesis, add_stack, as_list, new_app, referred
from tests.infra.test_aws_limits import variables_of

if TYPE_CHECKING:
    from pathlib import Path

    from duetime_cdk.layers.build import Layers

PLACE = "eu-west-1:123456789012"
PATTERNS = {
    "lambda:InvokeFunction": f"arn:aws:lambda:{PLACE}:function:report-*",
    "sqs:SendMessage": f"arn:aws:sqs:{PLACE}:reports",
    "sns:Publish": f"arn:aws:sns:*:{PLACE.split(':')[1]}:reports-?",
    "events:PutEvents": f"arn:aws:events:{PLACE}:event-bus/default",
    "states:StartExecution": f"arn:aws:states:{PLACE}:stateMachine:report",
}
DEFINITION = f"arn:aws:ecs:{PLACE}:task-definition/report:*"
CLUSTER = f"arn:aws:ecs:{PLACE}:cluster/reports"
ROLE = "arn:aws:iam::123456789012:role/report-task"
JOB_DEFINITION = f"arn:aws:batch:{PLACE}:job-definition/report:*"
JOB_QUEUE = f"arn:aws:batch:{PLACE}:job-queue/reports"
PROJECT = f"arn:aws:codebuild:{PLACE}:project/report-?"
GLUE_JOB = f"arn:aws:glue:{PLACE}:job/report"
TARGETS = (*PATTERNS.values(), DEFINITION, CLUSTER, ROLE, JOB_DEFINITION, JOB_QUEUE, PROJECT, GLUE_JOB)
SETTINGS = replace(environment_named("prod"), aws_targets=TARGETS)


@pytest.fixture(scope="module")
def calling(layers: Layers, tmp_path_factory: pytest.TempPathFactory) -> Synthesis:
    """Return a deployment whose tasks may call a resource of each service."""
    return Synthesis(SETTINGS, layers, tmp_path_factory.mktemp("calling"))


@pytest.mark.parametrize(("action", "pattern"), PATTERNS.items())
def test_only_the_worker_can_call_targets_in_the_settings(calling: Synthesis, action: str, pattern: str) -> None:
    """Only the worker may call resources that match a pattern in the settings, with only one action per service."""
    granted = {
        function
        for function in calling.functions()
        for statement in calling.statements_of(function)
        if pattern in as_list(statement["Resource"])
    }
    assert granted == {"worker"}
    on_it = [one for one in calling.statements_of("worker") if pattern in as_list(one["Resource"])]
    # The worker may also list a function's executions.
    (statement,) = [one for one in on_it if as_list(one["Action"]) != ["lambda:ListDurableExecutionsByFunction"]]
    # The CDK merges the grant into one statement with the other grants for this action.
    assert as_list(statement["Action"]) == [action]
    assert [each for each in as_list(statement["Resource"]) if isinstance(each, str)] == [pattern]


def test_the_api_and_the_worker_know_the_target_patterns(calling: Synthesis) -> None:
    """The API checks targets against the patterns, and the worker checks them again before a call."""
    for function in ("api", "worker"):
        variables = variables_of(calling, function)
        assert variables[Variable.AWS_TARGETS.value].split() == list(TARGETS)


def test_without_patterns_no_service_can_be_called(dev: Synthesis) -> None:
    """Without patterns there are no grants for the services, except the grant for duetime's own state machine."""
    actions = {action for one in dev.statements_of("worker") for action in as_list(one["Action"])}
    assert actions.isdisjoint({"sns:Publish", "events:PutEvents"})
    machines = [
        one["Resource"] for one in dev.statements_of("worker") if "states:StartExecution" in as_list(one["Action"])
    ]
    assert [set(machine) for machine in machines] == [{"Ref"}]


def granted(synthesis: Synthesis, action: str) -> list[dict[str, Any]]:
    """Return the worker's grants for an action on resources named in the settings."""
    statements = [one for one in synthesis.statements_of("worker") if action in as_list(one["Action"])]
    return [
        {**one, "Resource": texts}
        for one in statements
        if (texts := [each for each in as_list(one["Resource"]) if isinstance(each, str)])
    ]


def test_only_jobs_in_the_settings_can_be_started_and_stopped(calling: Synthesis) -> None:
    """Jobs are limited to the state machines, task definitions, clusters and so on that the settings name."""
    durable = f"arn:aws:lambda:{PLACE}:function:report-*:*/durable-execution/duetime-*/*"
    jobs = f"arn:aws:batch:{PLACE}:job/*"
    executions = f"arn:aws:states:{PLACE}:execution:report:*"
    containers = f"arn:aws:ecs:{PLACE}:task/reports/*"
    for action, resource in (
        ("states:StartExecution", PATTERNS["states:StartExecution"]),
        ("states:DescribeExecution", executions),
        ("states:StopExecution", executions),
        ("ecs:DescribeTasks", containers),
        ("ecs:StopTask", containers),
        ("lambda:GetDurableExecution", durable),
        ("lambda:StopDurableExecution", durable),
        ("lambda:ListDurableExecutionsByFunction", PATTERNS["lambda:InvokeFunction"]),
        ("batch:TerminateJob", jobs),
        ("codebuild:StartBuild", PROJECT),
        ("codebuild:StopBuild", PROJECT),
        ("codebuild:BatchGetBuilds", PROJECT),
        ("codebuild:ListBuildsForProject", PROJECT),
        ("glue:StartJobRun", GLUE_JOB),
        ("glue:GetJobRun", GLUE_JOB),
        ("glue:GetJobRuns", GLUE_JOB),
        ("glue:BatchStopJobRun", GLUE_JOB),
    ):
        assert [one["Resource"] for one in granted(calling, action)] == [[resource]], action
    assert [one["Resource"] for one in granted(calling, "batch:SubmitJob")] == [[JOB_DEFINITION, JOB_QUEUE]]
    (stop,), (tag,) = granted(calling, "batch:TerminateJob"), granted(calling, "batch:TagResource")
    assert stop["Condition"] == {"StringEquals": {"aws:ResourceTag/duetime": "task"}}
    assert tag["Condition"] == {"StringEquals": {"aws:RequestTag/duetime": "task"}}
    for action in ("batch:DescribeJobs", "batch:ListJobs"):
        assert [one["Resource"][-1:] for one in granted(calling, action)] == [["*"]], action
    (run,) = granted(calling, "ecs:RunTask")
    on_clusters = {"ArnLike": {"ecs:cluster": [CLUSTER]}}
    assert (run["Resource"], run["Condition"]) == ([DEFINITION], on_clusters)
    (listed,) = granted(calling, "ecs:ListTasks")
    assert (listed["Resource"], listed["Condition"]) == (["*"], on_clusters)


def test_only_the_roles_in_the_settings_can_be_passed_to_containers(calling: Synthesis) -> None:
    """The named roles can be passed only to ECS tasks."""
    (passed,) = granted(calling, "iam:PassRole")
    assert passed["Resource"] == [ROLE]
    assert passed["Condition"] == {"StringEquals": {"iam:PassedToService": "ecs-tasks.amazonaws.com"}}


def test_ends_of_jobs_are_sent_to_the_queue_of_high_priority(calling: Synthesis) -> None:
    """Only jobs that tasks have started are reported, and the message contains only the job's name."""
    rules = {
        rule["EventPattern"]["detail-type"][0]: rule
        for rule in calling.properties("AWS::Events::Rule").values()
        if rule.get("EventPattern", {}).get("source", [""])[0].startswith("aws.")
    }
    told = calling.functions()["worker"]["Environment"]["Variables"]
    states, tasks = rules["Step Functions Execution Status Change"], rules["ECS Task State Change"]
    assert states["EventPattern"]["detail"] == {
        "status": ["SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"],
        "name": [{"prefix": "duetime-"}],
    }
    assert tasks["EventPattern"]["detail"] == {"lastStatus": ["STOPPED"], "startedBy": [{"prefix": "duetime-"}]}
    durable, batch = rules["Durable Execution Status Change"], rules["Batch Job State Change"]
    assert durable["EventPattern"]["detail"]["durableExecutionName"] == [{"prefix": "duetime-"}]
    assert batch["EventPattern"]["detail"] == {"status": ["SUCCEEDED", "FAILED"], "jobName": [{"prefix": "duetime-"}]}
    for rule, path in (
        (states, "$.detail.name"),
        (tasks, "$.detail.startedBy"),
        (durable, "$.detail.durableExecutionName"),
        (batch, "$.detail.jobName"),
    ):
        (target,) = rule["Targets"]
        assert referred(target["Arn"]) == referred(told[Variable.QUEUE_HIGH.value])
        (name,) = target["InputTransformer"]["InputPathsMap"]
        assert target["InputTransformer"]["InputPathsMap"] == {name: path}
        assert target["InputTransformer"]["InputTemplate"] == f'{{"j":<{name}>}}'


@pytest.mark.parametrize(
    ("detail_type", "service", "named", "paths"),
    [
        (
            "CodeBuild Build State Change",
            "codebuild",
            {"project-name": [{"wildcard": "report-*"}]},
            ["$.region", "$.detail.project-name", "$.detail.build-id"],
        ),
        (
            "Glue Job State Change",
            "glue",
            {"jobName": [{"wildcard": "report"}]},
            ["$.region", "$.detail.jobName", "$.detail.jobRunId"],
        ),
    ],
)
def test_ends_of_jobs_without_a_name_are_sent_with_another_identifier(
    calling: Synthesis, detail_type: str, service: str, named: dict[str, Any], paths: list[str]
) -> None:
    """Only jobs that the settings name are reported."""
    (rule,) = [
        each
        for each in calling.properties("AWS::Events::Rule").values()
        if each.get("EventPattern", {}).get("detail-type") == [detail_type]
    ]
    assert named.items() <= rule["EventPattern"]["detail"].items()
    (target,) = rule["Targets"]
    given = target["InputTransformer"]["InputPathsMap"]
    assert sorted(given.values()) == sorted(paths)
    told = ",".join(f"<{next(name for name in given if given[name] == path)}>" for path in paths)
    assert target["InputTransformer"]["InputTemplate"] == f'{{"j":["{service}",{told}]}}'


def test_without_jobs_there_are_no_rules_or_grants(dev: Synthesis) -> None:
    """Without jobs in the settings, there are no rules and no grants for ECS tasks."""
    assert not [each for each in dev.properties("AWS::Events::Rule").values() if "aws.ecs" in str(each)]
    assert not granted(dev, "ecs:RunTask")


def test_security_rules_have_no_findings_in_patterns_of_the_settings(layers: Layers, tmp_path: Path) -> None:
    """The wildcards in the settings are acknowledged one by one."""
    from aws_cdk import Validations
    from cdk_nag import AwsSolutionsChecks

    app = new_app(tmp_path)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    add_stack(app, SETTINGS, layers)
    app.synth()


@pytest.mark.parametrize(
    "pattern",
    [
        "*",
        "arn:aws:*:eu-west-1:123456789012:reports",
        "arn:aws:s3:::reports",
        "arn:*:sqs:eu-west-1:123456789012:reports",
        "arn:aws:sqs:eu-west-1:*:reports",
        "arn:aws:sqs:eu-west-1:123456789012:",
        "arn:aws:sqs:eu-west-1:123456789012:re ports",
    ],
)
def test_a_target_pattern_without_service_or_account_is_rejected(pattern: str) -> None:
    """A pattern without a supported service, an account and a name is refused; it could open more than intended."""
    with pytest.raises(UnsafeEnvironment, match="is not the ARN, with service and account, of a function"):
        replace(SETTINGS, aws_targets=(pattern,))


@pytest.mark.parametrize(
    ("name", "told"),
    [("a?b", "a*b"), ("a*?b", "a*b"), ("a?*", "a*"), ("??", "*"), ("a**b?c", "a*b*c"), ("plain", "plain")],
)
def test_a_name_pattern_is_widened_to_what_eventbridge_supports(name: str, told: str) -> None:
    """A pattern with `?` or several consecutive wildcards gets one `*`, as EventBridge supports neither."""
    assert wildcard_of(name) == told
