"""Users of a simulated account, who use the complete API and pull tasks."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any

from duetime.domain.operating_parameters import INTAKE_RULES_LIFE
from duetime.domain.tasks.task_options import Priority, Rate
from duetime.domain.times import HOUR, MINUTE, SECOND, Millis, to_iso
from duetime_testing.simulation.gateway import event_of
from duetime_testing.simulation.machines import SKEW
from tests.simulation import works
from tests.simulation.account import LEASE_SECONDS, PULLED
from tests.simulation.endpoints import BATCH_URL, CALLBACK_URL, CONFLICT, ROWS_URL, SINK, URL
from tests.simulation.node_watching import is_by_topology
from tests.simulation.rate_watching import RATES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.simulation.fault_simulation import FaultSimulation

LEASE = LEASE_SECONDS * SECOND
_ANSWERED = range(200, 500)
_LATEST = 6
_SILENT = 0.3
"""The fraction of leases for which the worker sends no heartbeats, and works only as long as the lease lasts."""
_HOT = (60, 140, 400)
"""Times in milliseconds between two creations with the same key, both shorter and longer than a message's delivery."""
_STORM = 18 * SECOND
_VANISHED = 0.15
"""The fraction of lease requests that are abandoned before the response while calls may fail."""
_ORDERED_BATCHES = 0.5
"""The fraction of batches whose tasks share one ordered key."""
_REUSED = 0.1
"""The fraction of idempotency keys that are sent again with a different body."""
_FAR = range(2, 24)
"""The possible numbers of hours until the due time of tasks that are created before days of silence."""
_SHORT = {"timeout_seconds": 60, "notify_within_seconds": 60, "retry": {"max_attempts": 2, "initial_seconds": 1}}


@dataclass
class Reply:
    """A response of the API.

    Attributes:
        goes_on: whether a bulk operation continues the request's work after the response.
    """

    status: int
    body: Any
    goes_on: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)


class Users:
    """Actions of users and pull workers, at random times."""

    def __init__(self, simulation: FaultSimulation) -> None:
        self.simulation = simulation
        self.random = simulation.random
        self._keys = count(1)
        self._polls = count(1)
        self._is_ruled = False

    def ask(
        self, method: str, path: str, body: object = None, query: str = "", headers: dict[str, str] | None = None
    ) -> Reply | None:
        """Send a request whose body is JSON or unchanged bytes, and return `None` if there is no response."""
        text = None if body is None else body.decode() if isinstance(body, bytes) else json.dumps(body)
        event = event_of(method, path, text, headers or {}, query, None, is_base64=False)
        # The request id must not depend on what ran before.
        event["requestContext"]["requestId"] = "request"
        end = self.simulation.wait_for(self.simulation.invoke("api", event))
        if end.failed:
            return None
        goes_on = "/v1/bulk-operations/" in json.dumps(end.answer.get("multiValueHeaders") or end.answer.get("headers"))
        answer = Reply(
            end.answer["statusCode"], json.loads(end.answer["body"] or "null"), goes_on, end.answer.get("headers") or {}
        )
        self.simulation.trace("user", method, path, query, answer.status)
        self.simulation.watching.check(
            answer.status in {*_ANSWERED, 503}, f"{method} {path} was answered {answer.status}"
        )
        return answer

    def use(self, until: Millis) -> None:
        """Act at random until this time."""
        while self.simulation.time.now() < until:
            self.simulation.take(self.random.randrange(1, 20 * SECOND))
            if self.random.random() < 0.05:
                self._send_event()
            if not self.simulation.watching.accepted or self.random.random() < 0.45:
                self._create()
            else:
                accepted = self.simulation.watching.accepted
                # The most recently created tasks have not begun yet, or are running.
                self._control(self.random.choice(accepted[-_LATEST:] if self.random.random() < 0.6 else accepted))

    def use_hot_keys(self, until: Millis) -> None:
        """Sometimes create tasks with the same key many times a second, without waiting for responses."""
        simulation, draw = self.simulation, Random(f"{self.simulation.seed} hot keys")  # noqa: S311 - repeatable
        while True:
            simulation.take(draw.randrange(5, 90) * SECOND)
            every, ends_at = draw.choice(_HOT), simulation.time.now() + _STORM
            key = f"hot-{next(self._keys)}"
            unique = {"key": key, "until": draw.choice(["started", "ended"]), "on_conflict": "replace"}
            rule = draw.choice(({"unique": unique}, {"debounce": {"key": key, "seconds": 3, "max_seconds": 5}}))
            body = {"type": works.PLAIN, "timeout_seconds": 60, "retry": {"max_attempts": 1}, **rule}
            if ends_at > until:
                return
            simulation.count("hot key")
            while simulation.time.now() < ends_at:
                body["priority"] = draw.choice(["normal", "normal", "high"])
                simulation.time.start_process(partial(self._send, {**body}))
                simulation.take(every)

    def use_batches(self, until: Millis) -> None:
        """Create tasks that are due at about the same time, for a batch handler or for an endpoint's batch."""
        endpoint = {"kind": "http", "url": BATCH_URL, "batch": {"max_size": 3, "max_wait_seconds": 4}}
        simulation, draw = self.simulation, Random(f"{self.simulation.seed} batches")  # noqa: S311 - repeatable
        while simulation.time.now() < until:
            simulation.take(draw.randrange(5, 60) * SECOND)
            retry = {"max_attempts": draw.choice([1, 3])}
            limits = {"timeout_seconds": draw.choice([30, 120]), "notify_within_seconds": 60, "retry": retry}
            target = draw.choice([{"kind": "handler"}, endpoint])
            body = {"type": works.BATCHED, "target": target, **limits}
            tasks = [{**body, "delay_seconds": draw.choice([0, 0, 1.5])} for _ in range(7)]
            answer = self.ask("POST", "/v1/tasks/batch", {"tasks": tasks})
            if answer is not None and answer.status == 200:
                made = [each["task"]["id"] for each in answer.body["results"] if "task" in each]
                simulation.watching.accepted.extend(made)

    def use_days(self, until: Millis) -> None:
        """Create tasks that are due hours later, during days without invocations, and postpone some of them."""
        simulation, draw = self.simulation, Random(f"{self.simulation.seed} days")  # noqa: S311 - repeatable
        while simulation.time.now() < until:
            simulation.take(draw.randrange(10, 90) * SECOND)
            body = {"type": works.PLAIN, **_SHORT, "delay_seconds": draw.choice(_FAR) * HOUR // SECOND}
            answer = self.ask("POST", "/v1/tasks", body)
            if answer is None or answer.status != 201:
                continue
            simulation.count("due after hours")
            simulation.watching.accepted.append(answer.body["id"])
            if draw.random() < 0.5:
                later = {"delay_seconds": draw.choice(_FAR) * HOUR // SECOND}
                self.ask("PATCH", f"/v1/tasks/{answer.body['id']}", later)

    def use_dependencies(self, until: Millis) -> None:
        """Create tasks that start after some of the latest tasks, and chains of tasks that wait for each other."""
        simulation, draw = self.simulation, Random(f"{self.simulation.seed} dependencies")  # noqa: S311 - repeatable
        while simulation.time.now() < until:
            simulation.take(draw.randrange(1, 15) * SECOND)
            latest = simulation.watching.accepted[-_LATEST:]
            if not latest:
                continue
            after = sorted(set(draw.choices(latest, k=draw.choice([1, 1, 2, 4]))))
            for _ in range(draw.choice([1, 1, 3])):
                rule = draw.choice(["all_success", "all_success", "all_done", "one_failed"])
                body = {"type": works.PLAIN, "timeout_seconds": 60, "after": after, "trigger_rule": rule}
                body["notify_within_seconds"] = 60
                body |= {"delay_seconds": draw.choice([0, 0, 40]), "retry": {"max_attempts": 2}}
                answer = self.ask("POST", "/v1/tasks", body)
                if answer is None or answer.status != 201:
                    break
                simulation.count("dependency")
                simulation.watching.accepted.append(answer.body["id"])
                after = [answer.body["id"]]

    def use_ordered_keys(self, until: Millis) -> None:
        """Create tasks with the same key, one by one and in batches, and control one of the tasks."""
        simulation, draw = self.simulation, Random(f"{self.simulation.seed} ordered")  # noqa: S311 - repeatable
        while simulation.time.now() < until:
            simulation.take(draw.randrange(5, 60) * SECOND)
            retry = {"max_attempts": draw.choice([1, 3]), "initial_seconds": 5}
            body = {"type": works.PLAIN, **_SHORT, "retry": retry, "order": {"key": f"k{next(self._keys)}"}}
            made = []
            for _ in range(4):
                body["delay_seconds"] = draw.choice([0, 0, 0, 5, 90])
                if draw.random() < 0.5:
                    answer = self.ask("POST", "/v1/tasks/batch", {"tasks": 3 * [body]})
                    results = answer.body["results"] if answer is not None and answer.status == 200 else []
                    made += [each["task"]["id"] for each in results if "task" in each]
                else:
                    answer = self.ask("POST", "/v1/tasks", body)
                    made += [answer.body["id"]] if answer is not None and answer.status == 201 else []
            simulation.watching.accepted.extend(made)
            if made:
                self._control(draw.choice(made))

    def _send(self, body: dict[str, Any]) -> None:
        """Create a task, and ignore the response."""
        self.ask("POST", "/v1/tasks", body)

    def change_rates(self, until: Millis) -> None:
        """Create tasks that wait for a slow rate, and raise and lower the rate for all of them."""
        simulation, draw = self.simulation, Random(f"{self.simulation.seed} rates")  # noqa: S311 - repeatable
        while simulation.time.now() < until:
            simulation.take(draw.randrange(5, 60) * SECOND)
            key = f"changing-{next(self._keys)}"
            limits = (1, draw.choice([3, 9]))
            slow, fast = ({"key": key, "limit": limit, "per_seconds": 30} for limit in limits)
            simulation.rates.asked[key] = {Rate(key, limit, 30) for limit in limits}
            body = {"type": works.PLAIN, "timeout_seconds": 60, "rate": slow, "retry": {"max_attempts": 1}}
            answers = [self.ask("POST", "/v1/tasks", body) for _ in range(8)]
            made = [answer.body["id"] for answer in answers if answer is not None and answer.status == 201]
            for rate in (fast, slow, fast):
                simulation.take(draw.randrange(1, 20) * SECOND)
                for task_id in made:
                    self.ask("PATCH", f"/v1/tasks/{task_id}", {"rate": rate})

    def control_rates(self, until: Millis) -> None:
        """Sometimes pause, pin or reset a rate, and undo this after a while."""
        simulation, draw = self.simulation, Random(f"{self.simulation.seed} rate control")  # noqa: S311 - repeatable
        while simulation.time.now() < until:
            simulation.take(draw.randrange(5, 60) * SECOND)
            path, how = f"/v1/rates/{draw.choice(RATES)['key']}", draw.choice(["pause", "pin", "reset"])
            if how == "pin":
                self.ask("PUT", path, {"limit": draw.choice([1, 30, 600]), "per_seconds": 30})
            else:
                self.ask("POST", f"{path}/{how}")
            simulation.take(draw.choice([5, 40]) * SECOND)
            self.ask("GET", path)
            for method, undone in (("POST", f"{path}/resume"), ("DELETE", path)):
                answer = None
                while answer is None or answer.status not in _ANSWERED:
                    answer = self.ask(method, undone)

    def _create(self) -> None:
        """Create a task, and repeat the request until there is a response."""
        name = f"key-{next(self._keys)}"
        body, headers = _limited(self._body(), name), {"Idempotency-Key": name}
        asked_at = self.simulation.time.now()
        for _ in range(4):
            answer = self.ask("POST", "/v1/tasks", body, headers=headers)
            if answer is not None and answer.status in _ANSWERED:
                # A task that an earlier request without a response found or replaced may have been deleted before the
                # repeat.
                expected = {200, 201, 409, 410} if "unique" in body or "debounce" in body else {201}
                self.simulation.watching.check(
                    answer.status in expected, f"a creation was answered {answer.status}: {answer.body}"
                )
                self.simulation.unique_keys.answered_creation(body, asked_at, answer)
                if answer.status in {200, 201}:
                    self.simulation.watching.accepted.append(answer.body["id"])
                    self._reuse(body, headers)
                return
            # Some clients continue only long after the minute of their task.
            self.simulation.take(self.random.choice([2, 2, 40, 240]) * SECOND)

    def _reuse(self, body: dict[str, Any], headers: dict[str, str]) -> None:
        """Sometimes use a task's key for a different body, which must be refused."""
        if Random(f"{body['name']} again").random() < _REUSED:  # noqa: S311 - same
            answer = self.ask("POST", "/v1/tasks", {**body, "priority": "low", "name": "other"}, headers=headers)
            is_refused = answer is None or answer.status in {422, 503}
            self.simulation.watching.check(is_refused, f"the key of {body['name']} was taken for another body")

    def _body(self) -> dict[str, Any]:
        pick = self.random.choice
        body: dict[str, Any] = {
            "type": pick([self._plain, works.UNDONE, works.PHASED, works.PHASED, PULLED]),
            "payload": pick([None, {"any": "json"}, ["%08x" % (n * 2654435761 % 2**32) for n in range(200)]]),
            "delay_seconds": pick([0, 0.3, 5, 90, 270, 400]),
            "priority": pick([each.value for each in Priority]),
            "retry": {"max_attempts": pick([1, 3, 5]), "initial_seconds": pick([0, 1, 60])},
            "timeout_seconds": pick([30, 120]),
            "notify_within_seconds": pick([10, 300]),
            "rollback_on_failure": pick([True, False]),
        }
        if body["type"] == PULLED:
            body["rollback_on_failure"] = False
        elif self.random.random() < 0.2:
            body |= self._target()
        if self.random.random() < 0.1:
            body["callback_url"] = CALLBACK_URL
        lock = pick([None, None, {"key": "a"}, {"key": "a", "scope": "run"}, {"key": "b", "max_holders": 2}])
        return body | ({"lock": lock} if lock else {})

    @property
    def _plain(self) -> str:
        """A type whose handler has only `run`.

        In every second simulation, the handler runs several tasks in one call.
        """
        return works.BATCHED if self.simulation.uses_batches else works.PLAIN

    def _target(self) -> dict[str, Any]:
        """A target that is an endpoint or a queue, instead of a handler."""
        if self.random.random() < 0.3:
            return {"target": {"kind": "sqs", "arn": SINK}, "rollback_on_failure": False}
        if self.random.random() < 0.3:
            rows = {"method": "POST", "body": {"json": {"task": "<duetime.task-id>"}}, "success": [202, CONFLICT]}
            return {"target": {"kind": "http", "url": ROWS_URL, **rows}, "rollback_on_failure": False}
        phases = self.random.choice([[], ["rollback"], ["prepare", "clean", "rollback"]])
        return {"target": {"kind": "http", "url": URL, "phases": phases}, "rollback_on_failure": "rollback" in phases}

    def _send_event(self) -> None:
        """Put an event on the intake's queue that becomes exactly one task, either directly or by a rule."""
        number = next(self._keys)
        name, delay = f"event-{number}", self.random.choice([0, 5, 90])
        task = {"type": works.PLAIN, "timeout_seconds": 60, "notify_within_seconds": 60}
        event: dict[str, Any] = {"id": name, "source": "users", "time": to_iso(self.simulation.time.now())}
        if number % 2 and self._has_rule(task):
            event |= {"detail-type": "order", "detail": {"order": {"name": name}, "delay": delay}}
        else:
            event["detail"] = {**task, "name": name, "delay_seconds": delay}
        self.simulation.sqs.send_message(QueueUrl=self.simulation.intake, MessageBody=json.dumps(event))
        self.simulation.watching.events[name] = self.simulation.time.now()

    def _has_rule(self, task: Mapping[str, Any]) -> bool:
        """Whether a rule for events that are not tasks exists, and all processes of the intake know it."""
        if not self._is_ruled:
            fields = {"name": "detail.order.name", "delay_seconds": "detail.delay"}
            rule = {"pattern": {"detail-type": ["order"]}, "create": {"task": task, "fields": fields}}
            answer = self.ask("PUT", "/v1/intake-rules/orders", rule)
            self._is_ruled = answer is not None and answer.status == 200
            self.simulation.take(INTAKE_RULES_LIFE + SECOND)
        return self._is_ruled

    def _control(self, task_id: str) -> None:
        path = f"/v1/tasks/{task_id}"
        calls: list[Callable[[], object]] = [
            partial(self.cancel, task_id),
            partial(self.cancel_by_force, task_id),
            partial(self._delete, task_id),
            *2 * [partial(self.ask, "PATCH", path, {"delay_seconds": self.random.choice([0, 1, 240, 600])})],
            *(partial(self.ask, "POST", f"{path}/{verb}") for verb in ("pause", "resume", "run", "retry", "rollback")),
            partial(self._notify, task_id),
            partial(self._notify_again, task_id),
            partial(self._read_one, task_id),
            partial(self.create_batch, [0, 60, 300]),
            partial(self.ask, "GET", "/v1/tasks"),
            partial(self.ask, "GET", f"{path}/attempts"),
        ]
        self.random.choice(calls)()

    def create_batch(self, delays: list[int]) -> None:
        """Create several tasks in one request, which is repeated until there is a response."""
        names = [f"batch-{next(self._keys)}" for _ in range(3)]
        tasks = [
            {"type": works.PLAIN, "name": name, "delay_seconds": self.random.choice(delays), **_SHORT} for name in names
        ]
        if Random(f"{names[0]} order").random() < _ORDERED_BATCHES:  # noqa: S311 - same
            tasks = [{**each, "order": {"key": names[0]}} for each in tasks]
        late = Random(f"{names[0]} late")  # noqa: S311 - same
        for _ in range(4):
            answer = self.ask("POST", "/v1/tasks/batch", {"tasks": tasks}, headers={"Idempotency-Key": names[0]})
            if answer is not None and answer.status in _ANSWERED:
                self.simulation.watching.check(
                    answer.status == 200, f"a batch was answered {answer.status}: {answer.body}"
                )
                made = [each["task"]["id"] for each in answer.body["results"] if "task" in each]
                self.simulation.watching.accepted.extend(made)
                return
            # Some clients continue only long after the minutes of their tasks.
            self.simulation.take(late.choice([2, 2, 40, 240]) * SECOND)

    def _read_one(self, task_id: str) -> None:
        """Read a task with its data outside the record, and check that it exists."""
        answer = self.ask("GET", f"/v1/tasks/{task_id}")
        stored = self.simulation.watching.record(task_id)
        gone = {404} if stored is not None and stored.erased else set()
        is_there = answer is None or answer.status in {200, 503, *gone}
        self.simulation.watching.check(is_there, f"{task_id} was accepted, and reading it is answered {answer}")

    def read_any(self) -> None:
        """Read some of the accepted tasks, which may have been deleted."""
        for task_id in self.random.sample(
            self.simulation.watching.accepted, min(5, len(self.simulation.watching.accepted))
        ):
            self.ask("GET", f"/v1/tasks/{task_id}")
            self.ask("GET", f"/v1/tasks/{task_id}/attempts")
        self.ask("GET", "/v1/tasks")

    def _notify_again(self, task_id: str) -> None:
        """Report the end of an earlier attempt, as a slow target might, and check that the report has no effect."""
        stored = self.simulation.watching.record(task_id)
        if stored is None or stored.fence < 2 or stored.is_terminal:
            return
        old = stored.fence - 1
        is_notified = any(line.fence == old for line in stored.attempt_history)
        answer = self.ask("POST", f"/v1/tasks/{task_id}/notify", {"fence": old, "outcome": "succeeded", "result": 7})
        is_refused = answer is None or answer.status != 200
        self.simulation.watching.check(
            is_refused or is_notified, f"{task_id} was ended by an end of the older attempt {old}"
        )

    def cancel(self, task_id: str) -> None:
        """Cancel a task; a task that is cancelled at once must no longer begin."""
        self.simulation.attempts.may_cancel.add(task_id)
        answer = self.ask("POST", f"/v1/tasks/{task_id}/cancel")
        if answer is not None and answer.status == 200 and answer.body["state"] == "cancelled":
            self.simulation.watching.cancelled.add(task_id)

    def cancel_by_force(self, task_id: str) -> None:
        """Cancel a task by force, which asks a running task to stop."""
        self.simulation.attempts.may_cancel.add(task_id)
        answer = self.ask("POST", f"/v1/tasks/{task_id}/cancel", {"force": True})
        if answer is not None and answer.status == 202:
            self.simulation.attempts.asked_to_stop(task_id, answer.body["fence"])

    def _delete(self, task_id: str) -> None:
        """Delete a task, and check that the task can no longer be read."""
        self.simulation.attempts.may_cancel.add(task_id)
        deleted = self.ask("DELETE", f"/v1/tasks/{task_id}")
        if deleted is not None and deleted.status == 204:
            again = self.ask("GET", f"/v1/tasks/{task_id}")
            is_gone = again is None or again.status in {404, 503}
            self.simulation.watching.check(is_gone, f"{task_id} was deleted, and reading it is answered {again}")

    def _notify(self, task_id: str) -> None:
        stored = self.simulation.watching.record(task_id)
        # Only a target that has returned reports an end, and this target knows that it has returned.
        if stored is None or not stored.awaiting_notification:
            return
        told = {"outcome": "succeeded", "result": 1}
        if self.random.random() < 0.3:
            told = {"outcome": "failed", "error": {"type": "Boom", "message": "told"}}
        self.ask("POST", f"/v1/tasks/{task_id}/notify", {"fence": stored.fence, **told})

    def resume_all(self) -> None:
        """Resume all paused tasks, except nodes that their topology paused and must resume itself."""
        for task in self.simulation.watching.unfinished():
            if task.state == "paused" and not is_by_topology(task):
                self.simulation.nodes.let_go(task.id.text)
                self.ask("POST", f"/v1/tasks/{task.id}/resume")
        for task in list(self.simulation.watching.tasks()):
            # This task blocks the line of its key until a user retries or deletes the task.
            if task.state in {"failed", "rolled_back"} and task.order is not None and task.order.on_failure == "stop":
                self.ask("DELETE", f"/v1/tasks/{task.id}")

    # The following methods simulate pull workers.

    def pull(self) -> None:
        """Lease tasks, execute them and report their ends, forever."""
        while True:
            asked_at = self.simulation.time.now()
            # This uses a separate random generator, so that the other draws of a seed stay the same.
            own = Random(f"poll {next(self._polls)} of {self.simulation.seed}")  # noqa: S311 - not a secret
            wanted = {"types": [PULLED], "wait_seconds": 10, "lease_seconds": LEASE_SECONDS, "worker": "w"}
            if within := own.choice([None, None, 5, 10]):
                wanted["acknowledge_within_seconds"] = within
            answer = self.ask("POST", "/v1/leases", wanted)
            leases = answer.body["leases"] if answer is not None and answer.status == 200 else []
            if leases and self.simulation.faulty and not self.simulation.is_calm and own.random() < _VANISHED:
                self._vanish(leases, (within or LEASE_SECONDS) * SECOND)
                continue
            for lease in leases:
                self._work(lease, asked_at, (within or LEASE_SECONDS) * SECOND)
                if not self.simulation.is_calm and self.random.random() < 0.3:
                    self._beat_late(lease)
            self.simulation.take(MINUTE if self.simulation.is_calm and not leases else 5 * SECOND)

    def _vanish(self, leases: list[dict[str, Any]], first: Millis) -> None:
        """Disconnect before the response, so that no worker uses the leases, and check that the leases are short."""
        self.simulation.count("puller vanished")
        for task in (lease["task"] for lease in leases):
            stored = self.simulation.watching.record(task["id"])
            if stored is not None and stored.fence == task["fence"] and stored.state == "running":
                left = (stored.lease_expires_at or 0) - self.simulation.time.now()
                self.simulation.watching.check(
                    left <= first + SKEW, f"{task['id']}, which nobody received, is leased for {left} ms"
                )

    def _work(self, lease: dict[str, Any], asked_at: Millis, first: Millis) -> None:
        watching, task = self.simulation.watching, lease["task"]
        # However often a lease is renewed, it lasts no longer than its attempt is allowed to last.
        overdue_at = asked_at + task["timeout_seconds"] * SECOND
        ends_at = min(asked_at + first, overdue_at)
        stored = watching.record(task["id"])
        if stored is not None and stored.fence == task["fence"] and stored.state == "running":
            # The claiming machine's clock and the response's delay may use up part of the lease, but less than half.
            left = (stored.lease_expires_at or 0) - self.simulation.time.now()
            watching.check(left >= first // 2 - 3 * SECOND, f"{task['id']} was leased with {left} ms left")
        if self.simulation.time.now() >= ends_at:
            return
        effect = watching.began("run", task["id"], task["fence"])
        path = f"/v1/leases/{lease['id']}"
        until = self.simulation.time.now() + self.random.choice([0, 2, 25, 70]) * SECOND
        is_silent = self.random.random() < _SILENT
        while (now := self.simulation.time.now()) < until:
            if now >= ends_at:
                watching.ended(effect)
                return
            self.simulation.take(min(5 * SECOND, until - now, ends_at - now))
            if is_silent:
                continue
            asked_at = self.simulation.time.now()
            renewed = self._beat(path, ends_at)
            if renewed is None:
                watching.ended(effect)
                return
            ends_at = min(asked_at + LEASE, overdue_at) if renewed else ends_at
        watching.ended(effect)
        how = self.random.choice(["complete", "complete", "fail", "release"])
        told = {"complete": {"result": 1}, "fail": {"error": {"type": "Boom", "message": "x"}}}.get(how)
        for _ in range(3):
            answer = self.ask("POST", f"{path}/{how}", told)
            if answer is not None and answer.status in _ANSWERED:
                return

    def _beat_late(self, lease: dict[str, Any]) -> None:
        """Report with a lease that was abandoned or lost, which must have no effect if another worker has the task."""
        task = lease["task"]
        self.simulation.take(self.random.randrange(1, 60) * SECOND)
        stored = self.simulation.watching.record(task["id"])
        is_over = stored is not None and stored.fence > task["fence"]
        answer = self.ask("POST", f"/v1/leases/{lease['id']}/heartbeat")
        heard = answer is not None and answer.status == 200
        self.simulation.watching.check(not (is_over and heard), f"{task['id']} was renewed under fence {task['fence']}")
        stored = self.simulation.watching.record(task["id"])
        if stored is None or stored.fence <= task["fence"] or stored.is_terminal:
            return
        is_notified = any(line.fence == task["fence"] for line in stored.attempt_history)
        answer = self.ask("POST", f"/v1/leases/{lease['id']}/complete", {"result": 9})
        heard = answer is not None and answer.status == 200
        self.simulation.watching.check(
            is_notified or not heard, f"{task['id']} was ended under fence {task['fence']}, which is another's by now"
        )

    def _beat(self, path: str, ends_at: Millis) -> bool | None:
        """Renew a lease; return whether this succeeded, or `None` if the lease is lost or ends before a response."""
        replies: list[Reply | None] = []
        strand = self.simulation.time.start(lambda: replies.append(self.ask("POST", f"{path}/heartbeat")))
        while not strand.done and self.simulation.time.now() < ends_at:
            self.simulation.time.wait([strand], ends_at)
        if not strand.done:
            return None
        reply = replies[0] if replies else None
        if reply is None or reply.status == 503:
            return False
        return True if reply.status == 200 else None


def _limited(body: dict[str, Any], name: str) -> dict[str, Any]:
    """A creation request to which limits and keys are added for some tasks.

    Only a task's name decides which are added.
    """
    limit = Random(name).choice([None, None, None, None, 1, 20, 120])  # noqa: S311 - not a secret
    made = {**body, "name": name, **({} if limit is None else {"expires_seconds": limit})}
    pick = Random(f"{name} more").choice  # noqa: S311 - same
    if (seconds := pick([None, None, None, 1, 30, 200])) is not None:
        made["retry"] = {**made["retry"], "max_duration_seconds": seconds}
    if several := _several_locks(Random(f"{name} locks")):  # noqa: S311 - same
        made.pop("lock", None)
        made["locks"] = several
    if "lock" in made and (seconds := pick([None, None, 1, 10])) is not None:
        made["lock"] = {**made["lock"], "wait_seconds": seconds}
    # This uses a separate random generator, so that the other draws of a seed stay the same.
    pick_rate = Random(f"{name} rate").choice  # noqa: S311 - same
    made |= pick_rate([{}, {}, {"rate": pick_rate([*RATES])}])
    key = pick(["x", "x", "y"])
    unique = {"key": key, "until": pick(["started", "ended"]), "on_conflict": pick(["keep", "replace", "refuse"])}
    debounce = {"key": key, "seconds": pick([1, 30]), "max_seconds": pick([None, 60])}
    made |= pick([{}, {}, {"unique": unique}, {"debounce": debounce}])
    if "debounce" in made:
        del made["delay_seconds"]
    pick_order = Random(f"{name} order").choice  # noqa: S311 - same
    order = {"key": pick_order(["p", "q", "r"]), "on_failure": pick_order(["continue", "continue", "stop"])}
    made |= pick_order([{}, {}, {}, {"order": order}])
    pick_fair = Random(f"{name} fair").choice  # noqa: S311 - same
    fair = {"fair_key": pick_fair(["a", "b"]), "fair_weight": pick_fair([1, 1, 3])}
    made |= pick_fair([{}, {}, {}, fair])
    return made


def _several_locks(random: Random) -> list[dict[str, Any]]:
    """Two or three locks in any order, each exclusive or shared; most tasks have no lock."""
    if random.random() < 0.75:
        return []
    keys = random.sample(["a", "b", "c", "d"], random.choice([2, 2, 3]))
    return [_one_lock(key, random) for key in keys]


def _one_lock(key: str, random: Random) -> dict[str, Any]:
    """A lock whose exclusive holders all name the same limit for the lock's key."""
    mode = random.choice(["exclusive", "shared"])
    lock = {"key": key, "mode": mode, "scope": random.choice(["task", "task", "run"])}
    wait = {"wait_seconds": random.choice([None, None, None, 60])}
    return lock | wait | ({"max_holders": 2} if key == "b" and mode == "exclusive" else {})
