"""A simulation of two Regions with a replicated table: a planned switch-over, losses, a partition, and a return."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.task_items import task_of
from duetime.composition import Platform
from duetime.composition.recovery import TwoRegions, takeover_of
from duetime.domain.operating_parameters import REGION_LIFE
from duetime.domain.tasks.states import State
from duetime.domain.times import HOUR, MINUTE, SECOND, Millis
from duetime.environment_variables import Variable
from duetime_testing.fakes.telemetry import FakeTelemetry
from duetime_testing.simulation.gateway import event_of
from duetime_testing.simulation.machines import Clients, Machine, Threads
from duetime_testing.simulation.virtual_time import SeededRandom
from tests.simulation import works
from tests.simulation.account import LEASE_SECONDS, Account, Invocation
from tests.simulation.busy_users import Answer, BusyUsers, Effect
from tests.simulation.outcomes import Outcome
from tests.simulation.replication import LONGEST_DELAY, Link, Replica

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duetime.domain.tasks.task import Task
    from duetime.services.region_takeover import TakeoverReport
    from duetime_testing.fakes.attribute_values import Item
    from duetime_testing.simulation.virtual_time import Strand

FIRST, SECOND_REGION = "eu-west-1", "eu-central-1"
_DRAIN = 4 * MINUTE
"""A time that is longer than the longest attempt with its retries."""
_BUSY, _GAP = (30 * SECOND, 2 * MINUTE), (SECOND, MINUTE)
_CALM = 6 * HOUR
_LATEST_START = REGION_LIFE + MINUTE
"""How long an invocation in the old Region may still start its batch after the takeover's record was received there."""


class Situation(StrEnum):
    """The reasons why the other Region takes over.

    Attributes:
        PLANNED: a planned switch-over, in which both Regions respond.
        LOST: the first Region is lost, and does not return.
        RETURNED: the first Region is lost, and returns after the takeover.
        PARTITION: no write is replicated, but both Regions process tasks, and the takeover is forced.
        BOTH_LIVE: the takeover is forced although both Regions and the replication work.
    """

    PLANNED = "planned"
    LOST = "lost"
    RETURNED = "returned"
    PARTITION = "partition"
    BOTH_LIVE = "both_live"


@dataclass
class RegionalEffect(Effect):
    """A call of a target in a Region."""

    region: str = ""
    at: Millis = 0


class RegionalAccount(Account):
    """The resources of one Region.

    Attributes:
        region: the name of the Region.
        is_gone: whether the Region is lost.
        knows_at: when the Region's table received the record which says that another Region is active.
    """

    def __init__(self, world: TwoRegionSimulation, region: str, **options: Any) -> None:  # noqa: ANN401 - of an account
        self.world, self.region = world, region
        super().__init__(world.seed, **options)
        self.is_gone = False
        self.knows_at: Millis | None = None
        self.environ |= {
            Variable.LEASE_SECONDS: str(LEASE_SECONDS),
            Variable.REGION: region,
            Variable.REGIONS: f"{FIRST} {SECOND_REGION}",
        }
        old = self.dynamodb.tables["tasks"]
        self.table = Replica(old.partition_name, old.sort_name, old.indexes)
        self.dynamodb.tables["tasks"] = self.table

    def lose(self) -> None:
        """Stop everything in the Region."""
        self.is_gone, self.receiving, self.ticking = True, False, False
        for machine in self.machines:
            machine.die()

    def come_back(self) -> None:
        """Let the Region work again, with its table and queues as they were."""
        self.is_gone, self.receiving, self.ticking = False, True, True

    def invoke(self, function: str, event: Mapping[str, Any]) -> Invocation:
        """Begin an invocation, which fails if the Region is lost."""
        if not self.is_gone:
            return super().invoke(function, event)
        invocation = Invocation(function, event)
        invocation.strand = self.time.start_process(lambda: None)
        return invocation

    def act(self, phase: str, context: Any, payload: Any) -> Any:  # noqa: ANN401 - any JSON
        """Execute a phase of a task as an endpoint would."""
        return self.world.act(phase, context, payload)

    def called_back(self, task_id: str, state: str) -> int:
        """Accept a callback."""
        del task_id, state
        return 200

    def notified(self, notice_id: str, kind: str) -> int:
        """Accept a notice."""
        del notice_id, kind
        return 200

    def arrived(self, key: tuple[str, str], item: Item | None, stamp: tuple[Millis, int]) -> None:
        """Apply a replicated write of the other Region."""
        if self.table.arrive(self.time.now(), key, item, stamp) and key == (schema.REGION_KEY, "active"):
            is_own = item is not None and item["n"]["S"] == self.region
            self.knows_at = None if is_own else self.time.now()

    def tasks(self) -> list[Task]:
        """All task records in the Region."""
        return [task_of(item) for item in self.table.every() if schema.STATE in item]


@dataclass
class Created:
    """A task whose creation was acknowledged."""

    id: str
    region: str
    at: Millis


class TwoRegionSimulation(BusyUsers):
    """Two Regions, their users, and an operator who lets the second Region take over.

    Attributes:
        situation: the reason for the takeover.
        violations: the promises that were broken.
        front: the Region to which users send their requests.
        open_at: when the second Region began to process tasks.
        stale: the fraction of requests that still go to the first Region after the takeover.
    """

    def __init__(self, seed: int, situation: Situation | None = None) -> None:
        self.seed = seed
        self.random = Random(f"{seed} regions")  # noqa: S311 - repeatable
        self.situation = situation or self.random.choice(list(Situation))
        self.violations: list[str] = []
        self.effects: list[Effect] = []
        self.created: list[str] = []
        self.acknowledged: list[Created] = []
        self.is_busy, self.rate = True, 0.0
        self.behave: Callable[[str, Any], Any] = self.do_something
        first = RegionalAccount(self, FIRST)
        self.time = first.time
        second = RegionalAccount(self, SECOND_REGION, time=self.time)
        self.regions = {FIRST: first, SECOND_REGION: second}
        self.links = [
            Link(self.time, self.random, second.arrived),
            Link(self.time, self.random, first.arrived),
        ]
        first.table.send, second.table.send = self.links[0].send, self.links[1].send
        self.front = FIRST
        self.stale = 0.0
        self.open_at: Millis | None = None
        self.reports: list[TakeoverReport] = []
        self._asked: dict[Strand, str] = {}
        works.STAGE.append(self)  # type: ignore[arg-type]  # handlers only call its `act`

    @property
    def first(self) -> RegionalAccount:
        """The Region that is active at first."""
        return self.regions[FIRST]

    @property
    def second(self) -> RegionalAccount:
        """The Region that is the standby at first."""
        return self.regions[SECOND_REGION]

    def end(self) -> None:
        """End all processes."""
        works.STAGE.remove(self)  # type: ignore[arg-type]  # same
        self.time.close()

    def check(self, holds: bool, violation: str) -> None:  # noqa: FBT001 - what is checked
        """Record a violation unless the condition holds."""
        if not holds:
            self.violations.append(f"{self.time.now()}: {violation}")

    def take(self, milliseconds: Millis) -> None:
        """Let this much time pass."""
        self.time.sleep_until(self.time.now() + milliseconds)

    # The following methods simulate users and targets.

    def ask(self, method: str, path: str, body: object = None) -> Answer | None:
        """Send a request to the Region that the client knows, and return `None` if there is no response."""
        name = FIRST if self.random.random() < self.stale else self.front
        account = self.regions[name]
        # A pull worker runs a task for the Region that issued the lease.
        self._asked[self.time.process()] = name
        if account.is_gone:
            self.take(SECOND)
            return None
        text = None if body is None else json.dumps(body)
        end = account.wait_for(account.invoke("api", event_of(method, path, text, {}, "", None, is_base64=False)))
        if end.failed:
            return None
        answer = Answer(end.answer["statusCode"], json.loads(end.answer["body"] or "null"))
        if answer.status == 503:
            self.check(answer.body["code"] == "region_not_active", f"{path}: {answer.body}")
            self.take(SECOND)
            return None
        if answer.status == 201 and "id" in answer.body:
            self.acknowledged.append(Created(answer.body["id"], name, self.time.now()))
        return answer

    def began(self, phase: str, task_id: str, fence: int) -> Effect:
        """Record that a target was called, and check that this Region may run the task."""
        process, now = self.time.process(), self.time.now()
        machine = process.home
        account = machine.account if isinstance(machine, Machine) else None
        region = account.region if isinstance(account, RegionalAccount) else self._asked[process]
        effect = RegionalEffect(task_id, fence, phase, process, region=region, at=now)
        for other in self.effects:
            if other.task_id == task_id and isinstance(other, RegionalEffect):
                self._check_against(effect, other)
        if region == SECOND_REGION:
            self.check(self.open_at is not None, f"{phase} of {task_id} began in the standby")
        elif self.first.knows_at is not None and isinstance(machine, Machine):
            is_late = now > self.first.knows_at + _LATEST_START
            self.check(not is_late, f"{phase} of {task_id} began in the Region that knows that it is not active")
        self.effects.append(effect)
        return effect

    def check_report(self, answer: Answer | None, task_id: str, fence: int) -> None:
        """Accept any response, because the fence decides whether a report takes effect."""

    def _check_against(self, effect: RegionalEffect, other: RegionalEffect) -> None:
        if other.region == effect.region:
            is_alone = not other.lives or other.fence == effect.fence
            self.check(is_alone, f"{effect.phase} of {effect.task_id} began while {other} goes on")
            return
        self.check(
            other.fence != effect.fence, f"{effect.task_id} began under the fence {effect.fence} in both Regions"
        )
        # A pull worker continues when the Region that issued its lease is lost.
        outlives = self.situation is Situation.LOST and not isinstance(other.process.home, Machine)
        if self.situation in {Situation.PLANNED, Situation.LOST} and not outlives:
            self.check(not other.lives, f"{effect.task_id} began while it runs in {other.region}")

    # The following methods simulate the operator.

    def take_over(self, *, is_forced: bool) -> TakeoverReport:
        """Make the second Region the active Region, as the command does."""
        is_again = self.open_at is not None
        platforms = {name: self._platform(each) for name, each in self.regions.items()}
        deployment = TwoRegions((FIRST, SECOND_REGION), "tasks", "contents", 0)
        work = takeover_of(deployment, SECOND_REGION, platforms, is_forced=is_forced, drain=_DRAIN)
        region = work.begin(lambda _line: None)
        if not region.is_open:
            work.carry_cursors()
        report = work.take_over(region)
        work.open(region)
        self.check(is_again == region.is_open, "the takeover was not begun as it should")
        self.open_at = self.open_at or self.time.now()
        self.reports.append(report)
        return report

    def _platform(self, account: RegionalAccount) -> Platform:
        operator = Machine(account, "operator", 0, 0, account.generation, account.environ)
        return Platform(
            environ=account.environ,
            clock=self.time,
            random_source=SeededRandom(self.seed),
            clients=_Direct(operator),  # type: ignore[arg-type]  # stands in for them
            threads=Threads(self.time, operator.clock, lambda _error: None),
            telemetry=FakeTelemetry(),
        )

    def in_time(self, work: Callable[[], object]) -> None:
        """Run a function in a separate process, and let time pass until it has ended."""
        strand = self.time.start_process(lambda: _done(work))
        end = self.time.now() + HOUR
        while not strand.done:
            assert self.time.now() < end, "it did not end"
            self.time.run_until(self.time.now() + SECOND)

    def run(self, duration: Millis) -> None:
        """Let this much time pass."""
        self.time.run_until(self.time.now() + duration)

    # The following methods run a complete simulation.

    def simulate(self) -> None:
        """Let users work, let the second Region take over, and let all work end."""
        draw = Random(f"{self.seed} takeover")  # noqa: S311 - repeatable
        users = [self.time.start_process(self.use) for _ in range(3)]
        pullers = [self.time.start_process(self.pull) for _ in range(2)]
        self.run(draw.randrange(*_BUSY))
        # When the Region is lost, the items of these topologies' plans are still being replicated.
        late = [self.time.start_process(partial(self._begin_topology, draw.randrange(5 * SECOND))) for _ in range(4)]
        self.run(5 * SECOND)
        lost_at = self._disturb()
        self.run(draw.randrange(*_GAP))
        self._switch(draw)
        self.run(draw.randrange(MINUTE, 3 * MINUTE))
        self._mend()
        self.run(draw.randrange(MINUTE, 3 * MINUTE))
        for user in (*users, *late):
            self.time.kill(user)
        self.is_busy, self.stale = False, 0.0
        self.run(MINUTE)
        if self.situation not in {Situation.PLANNED, Situation.LOST}:
            self.in_time(partial(self.take_over, is_forced=True))
        self._come_to_an_end()
        for puller in pullers:
            self.time.kill(puller)
        self._check_end(lost_at)

    def _begin_topology(self, after: Millis) -> None:
        self.take(after)
        limits = {"timeout_seconds": 60, "notify_within_seconds": 60}
        nodes = {key: {"type": works.PLAIN, "depends_on": on, **limits} for key, on in {"a": [], "b": ["a"]}.items()}
        self.ask("POST", "/v1/topologies", {"nodes": nodes})

    def _disturb(self) -> Millis:
        if self.situation in {Situation.LOST, Situation.RETURNED}:
            for link in self.links:
                link.cut()
            self.first.lose()
        elif self.situation is Situation.PARTITION:
            for link in self.links:
                link.cut()
        return self.time.now()

    def _switch(self, draw: Random) -> None:
        if self.situation in {Situation.PARTITION, Situation.BOTH_LIVE}:
            # Some clients do not know the new address yet.
            self.stale = draw.choice([0.0, 0.3])
        work = partial(self.take_over, is_forced=self.situation is not Situation.PLANNED)
        self.in_time(work)
        self.front = SECOND_REGION
        if self.situation is Situation.PLANNED:
            (report,) = self.reports
            self.check(not report.tasks["cut_off"], f"{report.tasks} although the first Region was quiet")

    def _mend(self) -> None:
        if self.situation is Situation.LOST:
            return
        if self.first.is_gone:
            self.first.come_back()
        for link in self.links:
            if not link.is_up:
                link.heal()

    def _come_to_an_end(self) -> None:
        end = self.time.now() + _CALM
        while self.time.now() < end and (left := self.open_tasks()):
            for task in left:
                if task.state is State.PAUSED or task.requested_action is not None:
                    self._resume(task.id.text)
            self.run(MINUTE)

    def _resume(self, task_id: str) -> None:
        self.time.start_process(lambda: _done(partial(self.ask, "POST", f"/v1/tasks/{task_id}/resume")))

    def open_tasks(self) -> list[Task]:
        """The tasks that have not ended, including nodes whose topology has ended or runs other nodes."""
        return [task for task in self.second.tasks() if task.finished_at is None]

    def _check_end(self, lost_at: Millis) -> None:
        for task in self.open_tasks():
            self.check(False, f"{task.id} ({task.type}) is still {task.state}")  # noqa: FBT003 - it does not hold
        there = {task.id.text for task in self.second.tasks()}
        for each in self.acknowledged:
            is_excused = self.situation is Situation.LOST and each.at > lost_at - LONGEST_DELAY - SECOND
            self.check(is_excused or each.id in there, f"{each} is lost")
        if self.situation is not Situation.LOST:
            self.run(MINUTE)
            ours, theirs = ({task.id: task.version for task in each.tasks()} for each in self.regions.values())
            self.check(ours == theirs, "the replicas differ in the end")

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of events, by name."""
        by_task: dict[str, set[str]] = {}
        for effect in self.effects:
            if isinstance(effect, RegionalEffect) and effect.phase == "run":
                by_task.setdefault(effect.task_id, set()).add(effect.region)
        doubled = sum(len(regions) > 1 for regions in by_task.values())
        taken = sum(sum(report.tasks.values()) for report in self.reports)
        return {
            "AWS calls": sum(each.calls for each in self.regions.values()),
            "taken over": taken,
            "run in both Regions": doubled,
            f"{self.situation} takeovers": 1,
        }


def in_two_regions(seed: int) -> Outcome:
    """Run a seed, and return its outcome."""
    world = TwoRegionSimulation(seed)
    try:
        world.simulate()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is reported with its seed
        return Outcome(seed, [], {}, crash=repr(error))
    finally:
        world.end()
    return Outcome(seed, world.violations, world.counts)


def _done(work: Callable[[], object]) -> None:
    work()


class _Direct(Clients):
    """The operator's AWS clients, whose calls do not fail and take no time."""

    def dynamodb(self) -> Any:  # noqa: ANN401 - stands in for a client
        """A DynamoDB client."""
        return self.machine.account.dynamodb

    def s3(self) -> Any:  # noqa: ANN401 - same
        """An S3 client."""
        return self.machine.account.s3


__all__ = ["FIRST", "SECOND_REGION", "Situation", "TwoRegionSimulation", "in_two_regions"]
