"""A siege: so many hostile requests to the api function over moto, and whatever of them ought not to have happened."""

from __future__ import annotations

import json
import threading
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from duetime import composition
from duetime.adapters.aws import Clients
from duetime.adapters.dynamodb import schema
from duetime.composition import Outside
from duetime.contract.problems import MEDIA_TYPE
from duetime.settings import QUEUE_VARIABLES, Variable
from tests.adapters.tables import new_table
from tests.clocks import StandingClock
from tests.functions.api.gateway import Gateway
from tests.hostile.corpus import BODIES, SCHEDULE, TASK, Corpus

if TYPE_CHECKING:
    from collections.abc import Sequence

    import boto3

    from tests.functions.api.gateway import Answer
    from tests.hostile.corpus import Hostile

BUCKET = "duetime-contents"
NAMES = ("holidays", "nightly")
A_WORLD = 1_000
"""Requests to one set of tables: moto walks through all of a table to answer a query."""
_REFUSED = 400
_OURS = 500
_READS = ("Get", "Query", "Scan", "BatchGet", "Describe", "List", "Head", "Receive")
OF_TARGETS = frozenset({"target_unreachable", "target_silent"})
"""Refusals that are the target's doing and documented as 502 and 504."""


@dataclass
class Siege:
    """What came of it so far.

    Attributes:
        answers: by status.
        broken: requests of which an answer or an effect was not as promised, each with what was wrong.
        written: successful writes to any store since the request began.
    """

    session: boto3.Session
    answers: Counter[int] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    broken: list[tuple[str, Hostile]] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    _worlds: int = 0
    _here: threading.local = field(default_factory=threading.local)

    def __post_init__(self) -> None:
        self.session.events.register("before-parameter-build.dynamodb.PutItem", self._seen)
        self.session.events.register("after-call", self._heard)

    def lay(self, count: int, seed: int = 0) -> None:
        """Send so many requests."""
        for first in range(0, count, A_WORLD):
            known = self.fresh_world()
            gateway = Gateway()
            for request in islice(Corpus(seed * 1_000_003 + first, known), min(A_WORLD, count - first)):
                self.send(gateway, request)

    def send(self, gateway: Gateway, request: Hostile) -> Answer | None:
        """Send one request, and look at what comes of it."""
        self.written.clear()
        try:
            answer = gateway.send(
                request.method,
                request.path,
                None,
                request.headers,
                query=request.query,
                raw=request.raw,
                is_base64=request.is_base64,
            )
        except Exception as error:  # noqa: BLE001 - whatever escapes the function is what is looked for
            self.answers[_OURS] += 1
            self.broken.append((f"raised {error!r}", request))
            return None
        self.answers[answer.status] += 1
        if (wrong := self._wrong(answer)) is not None:
            self.broken.append((wrong, request))
        return answer

    def _wrong(self, answer: Answer) -> str | None:
        if answer.status < _REFUSED:
            return None
        if answer.headers.get("Content-Type") != MEDIA_TYPE:
            return f"{answer.status} is no problem document"
        problem = json.loads(answer.text)
        answer.text.encode()
        self.codes[problem["code"]] += 1
        if answer.status >= _OURS and problem["code"] not in OF_TARGETS:
            return f"{answer.status} {problem['code']}"
        if problem["code"] in {"fields_invalid", "parameters_invalid"} and not problem["errors"]:
            return "names no field"
        return f"refused, yet wrote {self.written}" if self.written else None

    def fresh_world(self) -> dict[str, Sequence[str]]:
        """Empty stores but for a few things of every kind; their ids by the names of parameters."""
        self._worlds += 1
        sqs = self.session.client("sqs")
        queues: dict[str, str] = {
            variable: sqs.create_queue(QueueName=f"{priority}-{self._worlds}")["QueueUrl"]
            for priority, variable in QUEUE_VARIABLES.items()
        }
        table = new_table(self.session.client("dynamodb"))
        environ = {
            Variable.TABLE: table,
            Variable.BUCKET: BUCKET,
            Variable.AUTHENTICATION: "none",
            Variable.OPERATORS: "local",
            **queues,
        }
        composition.use(Outside(environ=environ, clock=StandingClock(), clients=Clients(self.session)))
        api = Gateway()
        for name in NAMES:
            assert api.send("PUT", f"/v1/calendars/{name}", BODIES["putCalendar"]).status < _REFUSED
            assert api.send("POST", "/v1/schedules", {**SCHEDULE, "name": name}).status < _REFUSED
        ids = [api.create(body)["id"] for body in (TASK, {"type": "report"}, {"type": "report", "delay_seconds": 60})]
        graph = api.send("POST", "/v1/topologies", BODIES["createTopology"])
        assert graph.status < _REFUSED, graph.text
        return {
            "task_id": [*ids, graph.body["id"]],
            "name": NAMES,
            "key": ("db-17",),
            "topology_id": [graph.body["id"]],
        }

    def _seen(self, params: Any, **_: Any) -> None:  # noqa: ANN401 - botocore's own event
        """Note whether the next item is a wake: it goes before what it is for, and alone it does nothing."""
        sort_key = params["Item"][schema.SORT_KEY]["S"]
        self._here.wake = schema.WAKE_MARK in sort_key or schema.SCHEDULE_MARK in sort_key

    def _heard(self, model: Any, parsed: Any, **_: Any) -> None:  # noqa: ANN401 - botocore's own event
        status = parsed.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        is_wake = model.name == "PutItem" and self._here.wake
        if status < _REFUSED and not is_wake and not model.name.startswith(_READS):
            self.written.append(model.name)
