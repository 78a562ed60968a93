"""The four functions: what each is told, what each may do, and which queue wakes it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda_event_sources as sources
from constructs import Construct

from duetime.settings import QUEUE_VARIABLES, Variable
from infra.door import Door
from infra.environments import FunctionName

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.content import Content
    from infra.environments import Environment
    from infra.layer_versions import LayerVersions
    from infra.queues import Queues
    from infra.tables import Tables

ROOT = Path(__file__).parent.parent
BATCH_SIZE = 10
"""Messages an invocation is given: the most that SQS hands out at once."""
WRITE = ("dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem")
"""What every function does to the table: read one item, put one, move one by a condition."""
READ_MANY = ("dynamodb:Query", "dynamodb:BatchGetItem")


@dataclass(frozen=True, slots=True)
class Stores:
    """What the functions work on."""

    tables: Tables
    content: Content
    queues: Queues


class Functions(Construct):
    """Each function is given the variables it reads and the actions it calls: no more."""

    def __init__(
        self, scope: Construct, id_: str, *, environment: Environment, layers: LayerVersions, stores: Stores
    ) -> None:
        super().__init__(scope, id_)
        self._environment = environment
        self._layers = layers
        self._stores = stores
        self.api = self._api()
        self.trigger = self._trigger()
        self.worker = self._worker()
        self.deadletter = self._deadletter()

    def _api(self) -> Door:
        settings = self._environment
        door = self._door(
            FunctionName.API,
            {
                Variable.BUCKET: self._stores.content.bucket.bucket_name,
                Variable.RETENTION_DAYS: str(settings.retention_days),
                Variable.AUTHENTICATION: settings.authentication,
            },
        )
        door.allow(READ_MANY, [self._stores.tables.tasks.table_arn])
        door.allow(["dynamodb:Query"], self._stores.tables.index_arns)
        self._stores.content.open_to(door)
        return door

    def _trigger(self) -> Door:
        door = self._door(FunctionName.TRIGGER, {})
        door.allow(READ_MANY, [self._stores.tables.tasks.table_arn])
        door.allow(["sqs:GetQueueAttributes"], self._queue_arns)
        # The next tick catches up what this one missed; a repeat by Lambda would only overlap with it.
        door.function.configure_async_invoke(retry_attempts=0, max_event_age=Duration.minutes(1))
        # With many shards it invokes itself. A policy of its own, as one of the role's would have to exist before
        # the function whose name is in it.
        invoke = iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[door.function.function_arn])
        iam.Policy(self, "TriggerInvokesItself", statements=[invoke], roles=[door.role])
        return door

    def _worker(self) -> Door:
        settings = self._environment
        door = self._door(
            FunctionName.WORKER,
            {
                Variable.BUCKET: self._stores.content.bucket.bucket_name,
                Variable.RETENTION_DAYS: str(settings.retention_days),
                Variable.LEASE_SECONDS: str(settings.lease_seconds),
                Variable.HANDLERS: settings.handlers_package,
                Variable.HTTP_ALLOW: ",".join(settings.http_allow),
            },
        )
        self._stores.content.open_to(door)
        grants = ROOT / settings.handlers_folder / "grants.json"
        for statement in json.loads(grants.read_text()):
            door.role.add_to_policy(iam.PolicyStatement.from_json(statement))
        self._wake_by_queues(door)
        return door

    def _wake_by_queues(self, worker: Door) -> None:
        """A mapping for each priority, so that each has room of its own."""
        for priority, queue in self._stores.queues.of_priority.items():
            worker.function.add_event_source(
                sources.SqsEventSource(
                    queue,
                    batch_size=BATCH_SIZE,
                    max_batching_window=Duration.seconds(0),
                    report_batch_item_failures=True,
                    max_concurrency=self._environment.concurrency[priority],
                )
            )

    def _deadletter(self) -> Door:
        door = self._door(
            FunctionName.DEADLETTER,
            {
                Variable.BUCKET: self._stores.content.bucket.bucket_name,
                Variable.RETENTION_DAYS: str(self._environment.retention_days),
            },
        )
        source = sources.SqsEventSource(
            self._stores.queues.dead_letters, batch_size=BATCH_SIZE, report_batch_item_failures=True
        )
        door.function.add_event_source(source)
        return door

    @property
    def doors(self) -> list[tuple[FunctionName, Door]]:
        """The functions by name."""
        return [
            (FunctionName.API, self.api),
            (FunctionName.TRIGGER, self.trigger),
            (FunctionName.WORKER, self.worker),
            (FunctionName.DEADLETTER, self.deadletter),
        ]

    @property
    def _queue_arns(self) -> list[str]:
        return [queue.queue_arn for queue in self._stores.queues.of_priority.values()]

    def _door(self, name: FunctionName, variables: Mapping[Variable, str]) -> Door:
        """A function that can place a task: a wake and a record in the table, a message on a queue."""
        settings, queues = self._environment, self._stores.queues.of_priority
        placing = {
            Variable.TABLE: self._stores.tables.tasks.table_name,
            **{QUEUE_VARIABLES[priority]: queue.queue_url for priority, queue in queues.items()},
            Variable.SHARDS: str(settings.shards),
            Variable.LOOK_AHEAD_SECONDS: str(settings.look_ahead_seconds),
            Variable.PRECISION: settings.precision,
        }
        door = Door(self, name, environment=settings, layers=self._layers, variables={**placing, **variables})
        door.allow(WRITE, [self._stores.tables.tasks.table_arn])
        door.allow(["sqs:SendMessage"], self._queue_arns)
        return door
