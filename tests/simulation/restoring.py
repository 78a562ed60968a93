"""A simulation of a lost table, which is restored to an earlier time at a random time, while old processes continue.

Old messages stay on their queues, old workers continue with the lost table, executions of the state machine continue,
and pull workers report to the new functions with their old leases.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.task_items import task_of
from duetime.composition import Platform
from duetime.composition.recovery import restore_of
from duetime.domain.operating_parameters import FENCES_PER_EPOCH
from duetime.domain.restore import AfterRestore
from duetime.domain.tasks.states import TERMINAL, State
from duetime.domain.times import HOUR, MINUTE, SECOND, Millis
from duetime.environment_variables import Variable
from duetime_testing.fakes.task_table import new_table
from duetime_testing.fakes.telemetry import FakeTelemetry
from duetime_testing.simulation.gateway import event_of
from duetime_testing.simulation.machines import Clients, Machine, Threads
from duetime_testing.simulation.virtual_time import SeededRandom
from tests.simulation import works
from tests.simulation.account import LEASE_SECONDS, Account
from tests.simulation.busy_users import Answer, BusyUsers, Effect
from tests.simulation.outcomes import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duetime.domain.tasks.task import Task
    from duetime.services.restore import RestoreReport
    from duetime_testing.fakes.attribute_values import Item

EPOCH = 1
_BEFORE, _GAP = (MINUTE, 5 * MINUTE), (2 * SECOND, 4 * MINUTE)
"""How long users are busy before the restore point, and from the restore point to the loss."""
_SKEW, _MOMENTS = SECOND, 10
"""The time within which a backup may mix writes to different items, and the number of table states that it mixes.

Source: DynamoDB Developer Guide, "Backup and restore: how it works" (usually less than a second).
"""
_CALM = 3 * HOUR


@dataclass
class Lines:
    """The lines of a restore's report, by task."""

    by_id: dict[str, dict[str, str]] = field(default_factory=dict)

    def add(self, line: Mapping[str, str]) -> None:
        """Keep a line."""
        self.by_id[line["id"]] = dict(line)


class RestoreSimulation(BusyUsers, Account):
    """An account whose table is lost and restored.

    Attributes:
        violations: the promises that were broken.
        effects: all calls of targets.
        behave: the behavior of a target, which is random by default.
        snapshot: the items at the restore point, by key.
        reports: the lines that the last restore reported.
        is_busy: whether users create tasks.
        refused: the number of reports with old fences that were refused.
    """

    def __init__(self, seed: int, after: AfterRestore | None = None, *, rate: float = 0.0) -> None:
        super().__init__(seed, rate=rate)
        self.seed = seed
        self.after = after or self.random.choice(list(AfterRestore))
        self.violations: list[str] = []
        self.effects: list[Effect] = []
        self.created: list[str] = []
        self.reports = Lines()
        self.refused = 0
        self.is_busy = True
        self.restored_at: Millis | None = None
        self.behave: Callable[[str, Any], Any] = self.do_something
        self.snapshot: dict[tuple[str, str], Item] = {}
        self.restore_point: Millis = 0
        self.replaced = self.table_name = "tasks"
        self.environ[Variable.LEASE_SECONDS] = str(LEASE_SECONDS)
        works.STAGE.append(self)  # type: ignore[arg-type]  # handlers only call its `act`

    def end(self) -> None:
        """End all processes."""
        works.STAGE.remove(self)  # type: ignore[arg-type]  # same
        self.close()

    def check(self, holds: bool, violation: str) -> None:  # noqa: FBT001 - what is checked
        """Record a violation unless the condition holds."""
        if not holds:
            self.trace("watch", "VIOLATION", violation)
            self.violations.append(f"{self.time.now()}: {violation}")

    # The following methods simulate the users.

    def ask(self, method: str, path: str, body: object = None) -> Answer | None:
        """Send a request, and return `None` if there is no response."""
        text = None if body is None else json.dumps(body)
        event = event_of(method, path, text, {}, "", None, is_base64=False)
        is_of_old = self.restored_at is None
        end = self.wait_for(self.invoke("api", event))
        if end.failed:
            return None
        answer = Answer(end.answer["statusCode"], json.loads(end.answer["body"] or "null"), is_of_old)
        self.trace("user", method, path, answer.status)
        return answer

    def send(self, method: str, path: str) -> None:
        """Send a request while other work continues."""

        def send() -> None:
            self.ask(method, path)

        self.time.start_process(send)

    def asked(self, method: str, path: str, body: object = None) -> Answer:
        """Send a request from outside virtual time, and let time pass until there is a response."""
        answers: list[Answer | None] = []
        self.time.start_process(lambda: answers.append(self.ask(method, path, body)))
        while not answers:
            self.time.run_until(self.time.now() + 50)
        assert answers[0] is not None, f"no answer to {method} {path}"
        return answers[0]

    def check_report(self, answer: Answer | None, task_id: str, fence: int) -> None:
        """Check that a report about an attempt with an old fence is refused after the restore."""
        if answer is None or answer.is_of_old or fence >= FENCES_PER_EPOCH:
            return
        task = self.record(task_id)
        # If the restored table already contains the report, repeating the report has no effect.
        is_known = task is not None and any(line.fence == fence for line in task.attempt_history)
        self.check(is_known or answer.status >= 400, f"a report of {task_id} under the old fence {fence} was accepted")
        self.refused += answer.status == 409

    # The following methods simulate the targets.

    def began(self, phase: str, task_id: str, fence: int) -> Effect:
        """Record that a target was called, and check that no other attempt of the target's task is running."""
        process = self.time.process()
        effect = Effect(task_id, fence, phase, process)
        epoch = fence // FENCES_PER_EPOCH
        for other in self.effects:
            is_same_world = other.fence // FENCES_PER_EPOCH == epoch
            if other.task_id == task_id and other.lives and is_same_world:
                self.check(other.fence == fence, f"{phase} of {task_id} began while {other} goes on")
        machine = process.home
        if self.restored_at is not None and not (isinstance(machine, Machine) and machine.generation == 0):
            is_leased_before = not isinstance(machine, Machine) and epoch < EPOCH
            self.check(epoch == EPOCH or is_leased_before, f"{phase} of {task_id} began under the old fence {fence}")
        self.effects.append(effect)
        return effect

    def called_back(self, task_id: str, state: str) -> int:
        """Accept a callback."""
        del task_id, state
        return 200

    def notified(self, notice_id: str, kind: str) -> int:
        """Accept a notice."""
        del notice_id, kind
        return 200

    # The following methods simulate the loss.

    def note_restore_point(self, skew: Millis = 0) -> None:
        """Keep the current table as a backup.

        With a skew, each partition's state is from a random time within the skew.
        """
        moments = [self._partitions()]
        for _ in range(_MOMENTS if skew else 0):
            self.time.run_until(self.time.now() + skew // _MOMENTS)
            moments.append(self._partitions())
        self.restore_point = self.time.now()
        draw = Random(f"{self.seed} skew")  # noqa: S311 - repeatable
        names = dict.fromkeys(name for partitions in moments for name in partitions)
        kept = {name: draw.choice(moments).get(name, {}) for name in names}
        self.snapshot = {(name, key): item for name, items in kept.items() for key, item in items.items()}

    def _partitions(self) -> dict[str, dict[str, Item]]:
        partitions = self.dynamodb.tables[self.table_name].partitions
        return {name: {key: dict(item) for key, item in items.items()} for name, items in partitions.items()}

    def restore(self, *, keeps_replaced: bool = True) -> RestoreReport:
        """Replace the current table with the backup, take over the restored table, and deploy functions for it."""
        made = new_table(self.dynamodb)  # type: ignore[arg-type]  # stands in for a client
        name = f"{self.table_name}-restored"
        table = self.dynamodb.tables[name] = self.dynamodb.tables.pop(made)
        for key, item in self.snapshot.items():
            table.write(self.time.now(), key, dict(item))
        self.replaced, self.table_name = self.table_name, name
        report = self.take_over(keeps_replaced=keeps_replaced)
        table.watch = self._written
        self.environ |= {Variable.TABLE: name, Variable.EPOCH: str(EPOCH)}
        self.generation += 1
        self.restored_at = self.time.now()
        self.trace("operator", "restored", self.restore_point, self.after)
        return report

    def take_over(self, *, keeps_replaced: bool = True) -> RestoreReport:
        """Take over the restored table, as the restore command does."""
        operator = Machine(self, "operator", 0, 0, self.generation, self.environ)
        platform = Platform(
            environ=self.environ,
            clock=self.time,
            random_source=SeededRandom(self.seed),
            clients=_Direct(operator),  # type: ignore[arg-type]  # stands in for them
            threads=Threads(self.time, operator.clock, lambda _error: None),
            telemetry=FakeTelemetry(),
        )
        replaced = self.replaced if keeps_replaced else ""
        bucket = self.environ[Variable.BUCKET]
        at = self.restore_point
        restore = restore_of(
            self.table_name, replaced, bucket, EPOCH, self.after, self.reports.add, at=at, platform=platform
        )
        restore.stop()
        report = restore.take_over()
        report.add(restore.compare())
        return report

    def _written(self, old: Item | None, new: Item | None) -> None:
        if new is None or schema.STATE not in new or old is None:
            return
        task = task_of(new)
        is_taken_over = task.fence >= EPOCH * FENCES_PER_EPOCH
        # The record of an ended task is taken over only when the task is reopened.
        was_over = task_of(old).finished_at is not None and task.state in TERMINAL
        self.check(is_taken_over or was_over, f"{task.id} was written under the old fence {task.fence}")

    def tasks(self) -> list[Task]:
        """All task records in the current table."""
        return [task_of(item) for item in self.dynamodb.tables[self.table_name].every() if schema.STATE in item]

    def record(self, task_id: str) -> Task | None:
        """A task's record in the current table."""
        return next((task for task in self.tasks() if task.id.text == task_id), None)

    def open_tasks(self) -> list[Task]:
        """The tasks that have not ended."""
        return [task for task in self.tasks() if task.finished_at is None]

    def simulate(self) -> None:
        """Let users work, lose the table, restore the table, and let all work end."""
        draw = Random(f"{self.seed} loss")  # noqa: S311 - repeatable
        users = [self.time.start_process(self.use) for _ in range(3)]
        pullers = [self.time.start_process(self.pull) for _ in range(2)]
        self.time.run_until(self.time.now() + draw.randrange(*_BEFORE))
        self.note_restore_point(_SKEW)
        self.time.run_until(self.time.now() + draw.randrange(*_GAP))
        self.restore(keeps_replaced=draw.random() < 0.8)
        # The restore's switch stops all tasks.
        self.time.run_until(self.time.now() + draw.randrange(SECOND, 2 * MINUTE))
        begun = [each for each in self.effects if each.fence >= FENCES_PER_EPOCH and each.phase in {"prepare", "run"}]
        self.check(not begun, f"{begun} began although the operator had not let anything start")
        self.send("DELETE", "/v1/switches/all/all")
        self.time.run_until(self.time.now() + draw.randrange(MINUTE, 4 * MINUTE))
        for user in users:
            self.time.kill(user)
        self.is_busy = False
        self.rate = self.reordering = 0.0
        end = self.time.now() + _CALM
        # Executions that were started for the lost table may wait longer, with tokens that are no longer known.
        while self.time.now() < end and (left := self.open_tasks()):
            for task in left:
                if task.state is State.PAUSED:
                    self.send("POST", f"/v1/tasks/{task.id}/resume")
            self.time.run_until(self.time.now() + MINUTE)
        for puller in pullers:
            self.time.kill(puller)
        for task in self.open_tasks():
            self.check(False, f"{task.id} ({task.type}) is still {task.state}")  # noqa: FBT003 - it does not hold


def restored(seed: int) -> Outcome:
    """Run a seed, and return its outcome."""
    account = RestoreSimulation(seed)
    try:
        account.simulate()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is reported with its seed
        return Outcome(seed, [], {}, crash=repr(error))
    finally:
        account.end()
    new = [each for each in account.effects if each.fence >= FENCES_PER_EPOCH]
    counts = {"AWS calls": account.calls, "changes since": len(account.reports.by_id), "old reports": account.refused}
    return Outcome(seed, account.violations, counts | {"calls of targets": len(new)})


class _Direct(Clients):
    """The AWS clients on the operator's machine, whose calls do not fail and take no time."""

    def dynamodb(self) -> Any:  # noqa: ANN401 - stands in for a client
        """A DynamoDB client."""
        return self.machine.account.dynamodb

    def s3(self) -> Any:  # noqa: ANN401 - same
        """An S3 client."""
        return self.machine.account.s3


__all__ = ["EPOCH", "RestoreSimulation", "restored"]
