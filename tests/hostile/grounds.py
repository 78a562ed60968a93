"""The api function in this process, over moto, every write to its stores noted."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from duetime import composition
from duetime.adapters.aws_clients import Clients
from duetime.adapters.dynamodb import schema
from duetime.composition import Runtime
from duetime.settings import QUEUE_VARIABLES, Variable
from tests.adapters.tables import new_table
from tests.clocks import StandingClock
from tests.functions.api.gateway import Gateway
from tests.hostile.corpus import PULLED
from tests.hostile.world import furnished

if TYPE_CHECKING:
    from collections.abc import Sequence

    import boto3

BUCKET = "duetime-contents"
_REFUSED = 400
_READS = ("Get", "Query", "Scan", "BatchGet", "Describe", "List", "Head", "Receive")


@dataclass
class InProcess:
    """Stores of their own for each world."""

    session: boto3.Session
    api: Gateway = field(default_factory=Gateway)
    says_why: bool = True
    _written: list[str] = field(default_factory=list)
    _worlds: int = 0
    _here: threading.local = field(default_factory=threading.local)

    def __post_init__(self) -> None:
        self.session.events.register("before-parameter-build.dynamodb.PutItem", self._seen)
        self.session.events.register("after-call", self._heard)

    def begin(self) -> None:
        """Forget what was written."""
        self._written.clear()

    def written(self) -> Sequence[str]:
        """The successful writes to any store since then."""
        return list(self._written)

    def fresh_world(self) -> dict[str, Sequence[str]]:
        """Empty stores but for a few things of every kind; their ids by the names of parameters."""
        self._worlds += 1
        queues: dict[str, str] = {
            variable: self._queue(priority.value) for priority, variable in QUEUE_VARIABLES.items()
        }
        environ = {
            Variable.TABLE: new_table(self.session.client("dynamodb")),
            Variable.BUCKET: BUCKET,
            Variable.AUTHENTICATION: "none",
            Variable.OPERATORS: "local",
            Variable.PULLED_QUEUES: json.dumps({PULLED: self._queue(PULLED)}),
            Variable.PULLERS: json.dumps({PULLED: ["*"]}),
            # Where the good requests lead; nobody listens there.
            Variable.HTTP_ALLOW: "127.0.0.1",
            **queues,
        }
        composition.use(Runtime(environ=environ, clock=StandingClock(), clients=Clients(self.session)))
        return furnished(self.api)

    def _queue(self, name: str) -> str:
        return self.session.client("sqs").create_queue(QueueName=f"{name}-{self._worlds}")["QueueUrl"]

    def _seen(self, params: Any, **_: Any) -> None:  # noqa: ANN401 - botocore's own event
        """Note whether the next item is a wake: it goes before what it is for, and alone it does nothing."""
        sort_key = params["Item"][schema.SORT_KEY]["S"]
        self._here.wake = schema.WAKE_MARK in sort_key or schema.SCHEDULE_MARK in sort_key

    def _heard(self, model: Any, parsed: Any, **_: Any) -> None:  # noqa: ANN401 - botocore's own event
        status = parsed.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        is_wake = model.name == "PutItem" and self._here.wake
        if status < _REFUSED and not is_wake and not model.name.startswith(_READS):
            self._written.append(model.name)
