"""The CDK stack: creates all constructs and exports their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Annotations, CfnOutput, Stack

from infra.alarms import Alarms
from infra.archive import ArchiveBucket
from infra.archive_catalog import ArchiveCatalog
from infra.dashboard import Dashboard, MetricNames
from infra.environments import LOCAL
from infra.event_intake import Intake
from infra.functions import Functions, Stores
from infra.http_api import HttpApi
from infra.layer_versions import LayerVersions
from infra.payload_bucket import Content
from infra.queues import Queues
from infra.signing_secret import Signing
from infra.summary_recount import SummaryRecount
from infra.tasks_table import Tables
from infra.trigger_schedule import TriggerSchedule
from infra.websocket_api import WebSocketApi

if TYPE_CHECKING:
    from constructs import Construct

    from infra.environments import Environment
    from layers.build import Layers


class DuetimeStack(Stack):
    """All of duetime in one account and region."""

    def __init__(self, scope: Construct, id_: str, *, environment: Environment, layers: Layers) -> None:
        super().__init__(scope, id_, description=f"duetime, a distributed task scheduler ({environment.name})")
        tables = Tables(self, "Tables", environment=environment)
        content = Content(self, "Content", environment=environment)
        queues = Queues(self, "Queues", environment=environment)
        versions = LayerVersions(self, "Layers", target=environment.target, layers=layers)
        signing = Signing(self, "Signing", environment=environment)
        intake = Intake(self, "Intake", environment=environment) if environment.intake_owner else None
        archive = ArchiveBucket(self, "Archive", environment=environment) if environment.archive_days else None
        stores = Stores(tables, content, queues, signing, intake, archive)
        live = WebSocketApi(self, "Live", environment=environment)
        functions = Functions(self, "Functions", environment=environment, layers=versions, stores=stores, live=live)
        http = HttpApi(self, "HttpApi", environment=environment, function=functions.api.function)
        if functions.console:
            http.serve_console(functions.console.function)
        TriggerSchedule(self, "Tick", function=functions.trigger.function)
        if environment.recounts_summary:
            SummaryRecount(self, "Recount", function=functions.broadcast.function)
        names = MetricNames(environment, stores=stores, functions=functions, http=http)
        alarms = Alarms(self, "Alarms", environment=environment, names=names)
        if environment.name != LOCAL:
            Dashboard(self, "Dashboard", environment=environment, names=names)
        if archive:
            ArchiveCatalog(self, "Catalog", environment=environment, bucket=archive.bucket)
        # Printed by every deploy, before it begins.
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


def _needs(environment: Environment) -> str:
    """What the account must have, and what to do if it has less."""
    reserved = sum(environment.reserved.values())
    says = f"Environment {environment.name!r} is made for an account with {environment.concurrency_needed} concurrent"
    says += " Lambda executions (`aws lambda get-account-settings`)."
    if reserved:
        says += (
            f" It reserves {reserved} of them: with a limit below {reserved + 100} its deploy fails. Have the quota"
            " 'Concurrent executions' of AWS Lambda raised first, or lower `reserved` and `concurrency` in"
            " infra/environments.py."
        )
    return says
