"""A storm over a whole account: everything that can fail does, for a while; then everything comes to its end."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from duetime.domain.times import HOUR, MINUTE, SECOND, Millis
from duetime.handlers import Accepted, AttemptCancelled, AttemptPaused
from duetime.settings import Variable
from tests.simulation import works
from tests.simulation.account import Account
from tests.simulation.users import Users
from tests.simulation.watching import Watching

if TYPE_CHECKING:
    from duetime.handlers import Context

RATES = [0.0, 0.002, 0.01, 0.03]
STORM = 8 * MINUTE
CALM = 3 * HOUR
"""Everything must have ended by then: the second patrol, an hour later, finds what faults in a row have left."""


class Boom(Exception):
    """What a target raises."""


class Storm(Account):
    """An account with users and faults.

    Attributes:
        faulty: whether anything may fail.
        watching: the invariants.
        calm_after: how long it took until everything had ended, once nothing failed any more.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.seed = seed
        self.rate = self.reordering = self.random.choice(RATES)
        self.faulty = bool(self.rate)
        self.most_receives = self.random.choice([1000, 1000, 25])
        for queue in self.sqs.queues.values():
            queue.most_receives = self.most_receives if queue.dead_letters else 0
        self.table = self.dynamodb.tables["tasks"]
        self.watching = Watching(self)
        self.table.watch = self.watching.written
        self.users = Users(self)
        self.calm_after: Millis = 0
        works.STAGE.append(self)

    def blow(self, duration: Millis = STORM) -> None:
        """Let users and faults have their way for a while, then let everything come to its end."""
        try:
            end = self.time.now() + duration
            for _ in range(3):
                self.time.start_process(partial(self.users.use, end))
            for _ in range(2):
                self.time.start_process(self.users.pull)
            if self.faulty:
                self.time.start_process(partial(self._vandalise, end))
            self.time.run_until(end)
            self._calm_down()
            self.watching.check_end()
        finally:
            works.STAGE.remove(self)
            self.close()

    def _calm_down(self) -> None:
        self.rate = self.reordering = 0.0
        self.ticking = self.receiving = True
        began = self.time.now()
        while self.time.now() < began + CALM and self.watching.unfinished():
            self.time.start_process(self.users.resume_all)
            self.time.run_until(self.time.now() + MINUTE)
        self.calm_after = self.time.now() - began

    def _vandalise(self, until: Millis) -> None:
        """Kill machines, stop ticks, deploy anew with more shards."""
        while self.time.now() < until:
            self.take(self.random.randrange(1, 60 * SECOND))
            if self.time.now() >= until:
                return
            match self.random.randrange(6):
                case 0:
                    self.count("machine killed")
                    busy = [each for each in self.machines if each.strand is not None]
                    if busy:
                        victim = self.random.choice(busy)
                        self.trace(victim, "is killed")
                        victim.die()
                case 1:
                    self.count("ticks stopped")
                    self.ticking = not self.ticking
                case 2:
                    self.count("deployed")
                    self.generation += 1
                    self.shards = min(16, self.shards * 2)
                    self.environ[Variable.SHARDS] = str(self.shards)
                    self.trace("deploy", self.shards)
                case _:
                    pass

    # What targets do.

    def act(self, phase: str, context: Context, payload: Any) -> Any:  # noqa: ANN401 - any JSON
        """Do a phase of a task, under the eyes of the invariants."""
        del payload
        effect = self.watching.began(phase, context.task_id, context.fence)
        try:
            return self._behave(phase, context)
        finally:
            self.watching.ended(effect)

    def _behave(self, phase: str, context: Context) -> Any:  # noqa: ANN401 - same
        draw = self.random.random()
        until = self.time.now() + self.random.choice([0, 0, 100, 2 * SECOND, 20 * SECOND, 70 * SECOND])
        while self.time.now() < until and context.asked is None:
            self.take(min(5 * SECOND, until - self.time.now()))
        if draw < self.rate:
            self.count("target hangs")
            self.take(HOUR)
        if phase == "run" and context.asked == "pause":
            raise AttemptPaused({"row": 1})
        if phase == "run" and context.asked == "cancel":
            raise AttemptCancelled
        if phase == "run" and draw > 0.9:
            return Accepted()
        if draw > 0.75:
            raise Boom("by chance")
        return "done"

    # What is told of it.

    def told(self, last: int | None = None) -> list[str]:
        """The trace in words."""
        start = self.lines[0][0] if self.lines else 0
        lines = self.lines[-last:] if last else self.lines
        return [f"{line[0] - start:>9} {line[1]:<12} " + " ".join(map(_worded, line[2:])) for line in lines]


def _worded(what: object) -> str:
    text = str(what)
    return text if len(text) < 400 else f"{text[:400]}…"
