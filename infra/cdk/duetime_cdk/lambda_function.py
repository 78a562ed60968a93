"""Creates a Lambda function with its own role and log group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Acknowledgment, Duration, IgnoreMode, RemovalPolicy, Stack, Validations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from duetime.environment_variables import LIVE, Variable
from duetime_cdk.aws_limits import split_variables
from duetime_cdk.encryption import grant_use, key_of
from duetime_cdk.environments import LOCAL, FunctionName
from duetime_cdk.layers.build import settings_layer
from duetime_cdk.metric_sources import namespace_of, service_of
from duetime_cdk.removal_policies import removal_of
from duetime_cdk.source_folders import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from aws_cdk import aws_sqs as sqs

    from duetime_cdk.environments import Environment, Pollers
    from duetime_cdk.handlers_packages import HandlersPackage
    from duetime_cdk.layer_versions import LayerVersions

_OUTSIDE_LOOPS = frozenset(
    {
        FunctionName.EGRESS,
        FunctionName.TOPOLOGY,
        FunctionName.BULK,
        FunctionName.BROADCAST,
        FunctionName.ARCHIVE,
        FunctionName.WATCH,
        FunctionName.CONSOLE,
        FunctionName.AUTHORIZER,
    }
)
"""Functions that are not part of chains in which tasks start tasks; their recursive-loop detection stays on."""

_POLLING = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")
"""Actions that Lambda performs on a queue with the function's role (Source: AWS Lambda Developer Guide, using Lambda
with SQS)."""
UNTRACED = "The setting `xray` turns tracing on, which would be most of the bill for sparse traffic"
_VALIDATING = frozenset({FunctionName.API, FunctionName.INTAKE, FunctionName.WATCH})
"""Functions that validate requests with pydantic, and need no pydantic plugins, because they run no handlers."""
_VERSION_FLAGS = ("@aws-cdk/aws-lambda:recognizeLayerVersion", "@aws-cdk/aws-lambda:recognizeVersionProps")
"""CDK feature flags without which a change that affects only a layer would publish no version."""
_CREATING_TASKS = frozenset({FunctionName.API, FunctionName.INTAKE})
"""Functions that create tasks, and reject types without a handler."""


class LambdaFunction(Construct):
    """A deployed folder of `functions/`, with its own role, which at first may only write the function's log."""

    def __init__(
        self,
        scope: Construct,
        name: FunctionName,
        *,
        environment: Environment,
        layers: LayerVersions,
        variables: Mapping[Variable, str],
        package: HandlersPackage | None = None,
    ) -> None:
        super().__init__(scope, name.capitalize() if package is None else f"Handlers-{package.name}")
        # With these flags, changes to layers publish a version, and changes that Lambda does not publish are ignored.
        for flag in _VERSION_FLAGS:
            self.node.set_context(flag, value=True)
        self.log_group = log_group = _log_group(self, environment)
        self._name, self._layers = name, layers
        size = environment.size_of(name)
        memory = size.memory_mb if package is None else package.environment.memory_mb or size.memory_mb
        reserved = environment.reserved.get(name) if package is None else package.reserved
        self._environment = environment
        self._services: set[str] = set()
        self.variables: dict[Variable, str] = {
            **_observability(name, environment, Stack.of(self).stack_name),
            **variables,
        }
        """Environment variables, set by `complete`."""
        self.own_variables: Mapping[str, str] = {}
        """The user's environment variables, set by `complete`."""
        self.role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        log_group.grant_write(self.role)
        self.function = lambda_.Function(
            self,
            "Function",
            description=f"duetime {environment.name}: {name}{f' {package.name}' if package else ''}",
            runtime=layers.runtime,
            architecture=layers.architecture,
            code=_code(name),
            handler=f"{name}.handler.handler",
            layers=[*_tracing_layers(self, environment), *_layers(name, layers, package)],
            memory_size=memory,
            timeout=Duration.seconds(size.timeout_seconds),
            reserved_concurrent_executions=reserved,
            role=self.role,
            log_group=log_group,
            logging_format=lambda_.LoggingFormat.JSON,
            # The level is also set for Lambda, because Lambda's level (INFO by default) overrides the level of
            # Powertools.
            application_log_level_v2=lambda_.ApplicationLogLevel[environment.log_level],
            # The start, end and report lines of invocations would dominate the log and its cost.
            system_log_level_v2=lambda_.SystemLogLevel.WARN,
            tracing=lambda_.Tracing.ACTIVE if environment.xray else lambda_.Tracing.DISABLED,
            # Earlier versions are kept, because attempts may run in them for minutes after a deployment, and they cost
            # nothing.
            current_version_options=lambda_.VersionOptions(removal_policy=RemovalPolicy.RETAIN),
            # Retries through a queue are not a runaway loop. Our own limits must end these retries, instead of Lambda's
            # limit of sixteen hops.
            recursive_loop=None if name in _OUTSIDE_LOOPS else lambda_.RecursiveLoop.ALLOW,
        )
        self.live: lambda_.Function | lambda_.Alias = self.function
        """The resource that is invoked, which is the function's alias or, on the local stack, the function itself."""
        self.live_name, self.live_arn = self.function.function_name, self.function.function_arn
        """Name and ARN of the invoked resource; these create no dependency on the resource, so functions can refer to
        each other."""
        if environment.name != LOCAL:
            self.live = lambda_.Alias(self, "Live", alias_name=LIVE, version=self.function.current_version)
            self.live_name, self.live_arn = f"{self.live_name}:{LIVE}", f"{self.live_arn}:{LIVE}"
        self._acknowledge_findings()

    @property
    def version(self) -> str:
        """The most recently deployed version as named in metrics; `$LATEST` on the local stack, without versions."""
        if self.live is self.function:
            return f"{self.live_name}:$LATEST"
        return f"{self.function.function_name}:{self.function.current_version.version}"

    def switch_after(self, functions: Iterable[LambdaFunction]) -> None:
        """Let the alias change only after the versions of all these functions are published."""
        if isinstance(self.live, lambda_.Alias):
            self.live.node.add_dependency(*(each.function.current_version for each in functions))

    def complete(self) -> None:
        """Set the function's variables, and let it use the customer's key, if there is one.

        The largest variables move to a layer if the total is too large.

        Raises:
            LimitExceeded: the variables that cannot move to a layer are too large.
        """
        grant_use(self.role, self._environment, self._services)
        kept, moved = split_variables(self._name, self.variables, self.own_variables)
        if moved:
            layer = settings_layer({variable.value: value for variable, value in moved.items()})
            self.function.add_layers(self._layers.settings(self._name, layer))
        for name, value in [*self.own_variables.items(), *((each.value, value) for each, value in kept.items())]:
            self.function.add_environment(name, value)

    def _acknowledge_findings(self) -> None:
        """Suppress cdk-nag rules that do not apply, with reasons."""
        Validations.of(self.role).acknowledge(
            Acknowledgment(
                id="AwsSolutions-IAM5[Resource::*]",
                reason="X-Ray's actions do not support resource-level permissions; no other action is granted on all",
            )
        )
        undelivered = Acknowledgment(
            id="Serverless-LambdaAsyncFailureDestination",
            reason="Failed ticks and starts need not be kept, because the next tick makes up for them",
        )
        Validations.of(self.function).acknowledge(
            Acknowledgment(id="Serverless-LambdaTracing", reason=UNTRACED),
            Acknowledgment(
                id="Serverless-LambdaDLQ",
                reason="It would receive only asynchronous invocations, which are ticks and starts of bulk operations."
                " The next tick makes up for both. Messages from queues go to the queues' own dead-letter queues",
            ),
            undelivered,
        )
        Validations.of(self.live).acknowledge(undelivered)

    def allow(
        self, actions: Sequence[str], resources: Sequence[str], conditions: Mapping[str, object] | None = None
    ) -> None:
        """Grant this function alone `actions` on `resources`, with optional `conditions`."""
        self._services |= {action.partition(":")[0] for action in actions}
        self.role.add_to_policy(
            iam.PolicyStatement(actions=list(actions), resources=list(resources), conditions=conditions)
        )

    def invoke_by(
        self,
        queue: sqs.IQueue,
        *,
        batch_size: int,
        batch_seconds: int = 0,
        concurrency: int | None = None,
        pollers: Pollers | None = None,
    ) -> None:
        """Let a queue invoke this function, which reports failures per message of a batch.

        The CDK's own event source would grant two actions that Lambda does not need. A mapping has either a concurrency
        limit or provisioned pollers, not both.
        """
        self.allow(_POLLING, [queue.queue_arn])
        mapping = self.live.add_event_source_mapping(
            f"From{queue.node.id}",
            event_source_arn=queue.queue_arn,
            batch_size=batch_size,
            max_batching_window=Duration.seconds(batch_seconds),
            report_batch_item_failures=True,
            max_concurrency=concurrency,
            provisioned_poller_config=_poller_config(pollers) if pollers else None,
        )
        Validations.of(mapping).acknowledge(
            Acknowledgment(
                id="Serverless-LambdaEventSourceMappingDestination",
                reason="Lambda supports none for queues; failed messages go to the queue's own dead-letter queue",
            )
        )


def _poller_config(pollers: Pollers) -> lambda_.ProvisionedPollerConfig:
    return lambda_.ProvisionedPollerConfig(minimum_pollers=pollers.minimum, maximum_pollers=pollers.maximum)


def _layers(name: FunctionName, layers: LayerVersions, package: HandlersPackage | None) -> list[lambda_.LayerVersion]:
    if package is not None:
        return layers.of_packages[package.name]
    if name is FunctionName.WORKER:
        return layers.with_handlers
    return layers.with_types if name in _CREATING_TASKS else layers.own


def _tracing_layers(scope: Construct, environment: Environment) -> list[lambda_.ILayerVersion]:
    """The tracing layer, which comes first, so that our own layers take precedence over its files."""
    if not environment.otlp_layer:
        return []
    return [lambda_.LayerVersion.from_layer_version_arn(scope, "Tracing", environment.otlp_layer)]


def _code(name: FunctionName) -> lambda_.Code:
    """The function's folder under its own name, so that import paths are the same in tests and in Lambda."""
    only = ["/*", f"!/{name}", "__pycache__"]
    return lambda_.Code.from_asset(str(FUNCTIONS), exclude=only, ignore_mode=IgnoreMode.GIT)


def _log_group(scope: Construct, environment: Environment) -> logs.LogGroup:
    return logs.LogGroup(
        scope,
        "Log",
        retention=logs.RetentionDays[environment.log_retention],
        encryption_key=key_of(scope, environment),
        removal_policy=removal_of(environment),
    )


def _observability(name: FunctionName, environment: Environment, stack: str) -> dict[Variable, str]:
    return {
        Variable.SERVICE_NAME: service_of(name),
        Variable.METRICS_NAMESPACE: namespace_of(stack),
        Variable.LOG_LEVEL: environment.log_level,
        **({Variable.EPOCH: str(environment.epoch)} if environment.epoch else {}),
        **({Variable.REGIONS: " ".join(environment.regions)} if environment.regions else {}),
        **({Variable.PYDANTIC_PLUGINS: "__all__"} if name in _VALIDATING else {}),
        **({Variable.OTLP_ENDPOINT: environment.otlp_endpoint} if environment.otlp_endpoint else {}),
    }
