"""The CDK stack: creates all constructs and outputs their names."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from aws_cdk import Annotations, CfnOutput, Stack, Tags

from duetime.environment_variables import Variable
from duetime_cdk.alarms import Alarms
from duetime_cdk.archive import ArchiveBucket
from duetime_cdk.archive_catalog import ArchiveCatalog
from duetime_cdk.aws_limits import check_limits
from duetime_cdk.dashboard import Dashboard, MetricNames
from duetime_cdk.environments import DEV, LOCAL, with_settings
from duetime_cdk.event_intake import Intake
from duetime_cdk.functions import Functions, Stores
from duetime_cdk.handlers_folder import METADATA, handlers_of
from duetime_cdk.http_api import HttpApi
from duetime_cdk.job_events import JobEvents
from duetime_cdk.layer_versions import LayerVersions
from duetime_cdk.layers.build import build
from duetime_cdk.payload_bucket import Content
from duetime_cdk.queues import Queues
from duetime_cdk.signing_secret import Signing
from duetime_cdk.summary_recount import SummaryRecount
from duetime_cdk.tasks_table import Tables
from duetime_cdk.trigger_schedule import TriggerSchedule
from duetime_cdk.websocket_api import WebSocketApi

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from aws_cdk import Environment as AccountAndRegion
    from constructs import Construct

    from duetime_cdk.environments import Environment
    from duetime_cdk.layers.build import Layers


class DuetimeStack(Stack):
    """All of duetime in one account and region."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        handlers: str | Path = "",
        environment: Environment | str = DEV,
        settings: Mapping[str, Any] | None = None,
        layers: Layers | None = None,
        env: AccountAndRegion | None = None,
    ) -> None:
        """Define the stack; Lambda layers are built unless they are passed in.

        Args:
            scope: the app, or a stage of it.
            id_: the name of the stack, which differs between the environments of one account and region.
            handlers: the folder of your handlers, relative to the project (the folder of `cdk.json`); by default the
            one in the settings.
            environment: the settings, or the name of a preset: `dev`, `staging`, `prod` or `local`.
            settings: values that override settings of the environment.
            layers: built layers.
            env: the account and region, as for other stacks; by default those of the deploying environment.

        Raises:
            NotDeployable: the settings or the handlers are not deployable.
        """
        named = {"handlers_folder": str(handlers), "handlers_package": ""} if handlers else {}
        environment = with_settings(environment, {**named, **(settings or {})})
        own = handlers_of(environment)
        super().__init__(scope, id_, env=env, description=f"duetime, a distributed task scheduler ({environment.name})")
        # For the local stack, which reloads handlers; not part of the template.
        self.node.add_metadata(METADATA, str(own.package))
        Tags.of(self).add("project", "duetime")
        Tags.of(self).add("environment", environment.name)
        layers = layers or build(
            environment.target, own.package, importing=environment.handlers_imported, report=_report
        )
        tables = Tables(self, "Tables", environment=environment)
        content = Content(self, "Content", environment=environment)
        queues = Queues(self, "Queues", environment=environment)
        JobEvents(self, "JobEvents", environment=environment, queues=queues)
        versions = LayerVersions(self, "Layers", target=environment.target, layers=layers)
        signing = Signing(self, "Signing", environment=environment)
        intake = Intake(self, "Intake", environment=environment) if environment.intake_owner else None
        archive = ArchiveBucket(self, "Archive", environment=environment) if environment.archive_days else None
        stores = Stores(tables, content, queues, signing, intake, archive)
        live = WebSocketApi(self, "Live", environment=environment)
        functions = Functions(
            self, "Functions", environment=environment, layers=versions, stores=stores, live=live, handlers=own
        )
        http = HttpApi(self, "HttpApi", environment=environment, function=functions.api.function)
        console_url = http.serve_console(functions.console.function) if functions.console else ""
        # The local stack's gateway has a different address than its template.
        if console_url and environment.name != LOCAL:
            for function in (functions.worker, functions.api):
                function.variables[Variable.CONSOLE_URL] = console_url
        functions.complete()
        TriggerSchedule(self, "Tick", function=functions.trigger.function)
        if environment.recounts_summary:
            SummaryRecount(self, "Recount", function=functions.broadcast.function)
        names = MetricNames(self.stack_name, stores=stores, functions=functions, http=http)
        alarms = Alarms(self, "Alarms", environment=environment, names=names, console_url=console_url)
        if environment.name != LOCAL:
            Dashboard(self, "Dashboard", environment=environment, names=names)
        if archive:
            ArchiveCatalog(self, "Catalog", bucket=archive.bucket)
        check_limits(self)
        # Printed before every deploy.
        Annotations.of(self).add_info(_needs(environment))
        self._say(
            {
                "ApiUrl": http.api.api_endpoint,
                "ApiId": http.api.api_id,
                "LiveUrl": live.url,
                "TableName": tables.tasks.table_name,
                "BucketName": content.bucket.bucket_name,
                "DeadLetterQueueUrl": queues.dead_letters.queue_url,
                "AlarmTopicArn": alarms.topic.topic_arn,
                **({"IntakeQueueUrl": intake.queue.queue_url} if intake else {}),
                **({"IntakeRejectsQueueUrl": intake.rejects.queue_url} if intake else {}),
                **({"ArchiveBucketName": archive.bucket.bucket_name} if archive else {}),
                "SigningSecretArn": signing.secret.secret_arn,
                "TopologyMachineArn": functions.machine.machine.state_machine_arn,
                **{f"QueueUrl{priority.capitalize()}": q.queue_url for priority, q in queues.of_priority.items()},
                **{
                    f"{name.capitalize()}FunctionName": function.function.function_name
                    for name, function in functions.by_name
                },
            }
        )

    def _say(self, outputs: dict[str, str]) -> None:
        for name, value in outputs.items():
            CfnOutput(self, name, value=value)


def _report(line: str) -> None:
    """Show progress: the first build of the layers takes minutes, in which the CDK prints nothing."""
    sys.stderr.write(f"duetime: {line}\n")
    sys.stderr.flush()


def _needs(environment: Environment) -> str:
    """The account limits that the stack needs, and how to raise them."""
    reserved = sum(environment.reserved.values())
    says = f"Environment {environment.name!r} is made for an account with {environment.concurrency_needed} concurrent"
    says += " Lambda executions (`aws lambda get-account-settings`)."
    if reserved:
        says += (
            f" It reserves {reserved} of them: with a limit below {reserved + 100} its deploy fails. Have the quota"
            " 'Concurrent executions' of AWS Lambda raised first, or lower `reserved` and `concurrency` in"
            " its settings."
        )
    return says
