"""An owner who attacks the other owners of an account, with foreign ids, forged leases and page tokens, and floods."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

from duetime.contract.leases import token_of
from duetime.domain.ids import TaskId
from duetime.domain.tasks.pull_leases import LeaseKey
from duetime.domain.times import SECOND
from duetime.environment_variables import Variable
from tests.simulation import works
from tests.simulation.account import LEASE_SECONDS, PULLED
from tests.simulation.fault_simulation import FaultSimulation, Theme

if TYPE_CHECKING:
    from duetime.domain.times import Millis
    from tests.simulation.users import Reply

HOSTILE, VICTIM = "mallory", "local"
_HEADERS = {"x-duetime-owner": HOSTILE}
_FOREIGN: tuple[tuple[str, str, object], ...] = (
    ("GET", "", None),
    ("PATCH", "", {"priority": "low"}),
    ("DELETE", "", None),
    ("POST", "/cancel", {"force": True, "reason": HOSTILE}),
    ("POST", "/pause", {"reason": HOSTILE}),
    ("POST", "/resume", {"reason": HOSTILE}),
    ("POST", "/run", {"reason": HOSTILE}),
    ("POST", "/retry", {"reason": HOSTILE}),
    ("POST", "/rollback", {"reason": HOSTILE}),
    ("POST", "/notify", {"fence": 1, "outcome": "succeeded"}),
    ("POST", "/heartbeat", {"fence": 1}),
    ("POST", "/progress", {"fence": 1, "percent": 99}),
    ("GET", "/events", None),
    ("GET", "/attempts", None),
    ("GET", "/explain", None),
)
"""Operations on one task, each with its method, the last part of its path, and its body."""
_REPORTS = (
    ("complete", {"result": HOSTILE}),
    ("fail", {"error": {"type": "Boom", "message": HOSTILE}}),
    ("heartbeat", None),
    ("release", None),
)
_DOUBLINGS = 20
_BOMB = f"length(to_string(parents.a.outcome{'|[@,@]' * _DOUBLINGS})) > `1`"
"""A condition of 162 characters that would produce a string of more than ten million characters."""
_SHORT = {"timeout_seconds": 30, "notify_within_seconds": 60, "retry": {"max_attempts": 1}}
_FLOOD, _LONG_POLLS = 20, 8


class HostileOwner:
    """Actions of the hostile owner, at random times.

    Attributes:
        attacks: the number of attacks of each kind.
    """

    def __init__(self, simulation: FaultSimulation) -> None:
        self.simulation = simulation
        # This uses a separate random generator, so that the other draws of a seed stay the same.
        self.random = Random(f"{simulation.seed} hostile")  # noqa: S311 - repeatable
        self.attacks = dict.fromkeys(("foreign id", "forged lease", "forged page", "bomb", "flood", "foreign name"), 0)

    def attack(self, until: Millis) -> None:
        """Attack at random until this time."""
        kinds = (self._foreign, self._forge_lease, self._forge_page, self._bomb, self._flood, self._take_names)
        while self.simulation.time.now() < until:
            self.simulation.take(self.random.randrange(1, 8 * SECOND))
            kinds[self.random.choices(range(len(kinds)), (8, 8, 2, 1, 2, 3))[0]]()

    def _ask(self, method: str, path: str, body: object = None, query: str = "") -> Reply | None:
        return self.simulation.users.ask(method, path, body, query, {**_HEADERS})

    def _send(self, path: str, body: object, query: str = "") -> None:
        """Send a creation request, and ignore the response."""
        self._ask("POST", path, body, query)

    def _check(self, answer: Reply | None, allowed: set[int], what: str) -> None:
        """Check that the API rejected a request; a response with status 503 is a simulated fault."""
        is_refused = answer is None or answer.status in {*allowed, 503}
        self.simulation.watching.check(is_refused, f"{HOSTILE}: {what} was answered {answer and answer.status}")

    def _victim(self) -> str | None:
        found = self.simulation.watching.accepted
        return self.random.choice(found[-10:]) if found else None

    def _foreign(self) -> None:
        """Read, change or stop a task of the victim; the API must respond as if the task had never existed."""
        if (task_id := self._victim()) is None:
            return
        self.attacks["foreign id"] += 1
        method, rest, body = self.random.choice(_FOREIGN)
        self._check(self._ask(method, f"/v1/tasks/{task_id}{rest}", body), {404}, f"{method} {task_id}{rest}")

    def _forge_lease(self) -> None:
        """Report on the victim's attempt with a forged lease, first as the attacker and then as a permitted worker."""
        if (task_id := self._victim()) is None:
            return
        self.attacks["forged lease"] += 1
        record = self.simulation.watching.record(task_id)
        fence = max(1, record.fence if record is not None else 1)
        key = LeaseKey(TaskId.parse(task_id), fence, "forged", PULLED, LEASE_SECONDS * SECOND, "receipt")
        report, body = self.random.choice(_REPORTS)
        path = f"/v1/leases/{token_of(key)}/{report}"
        self._check(self._ask("POST", path, body), {403}, f"a forged lease of {task_id}")
        # A worker that may lease the type guesses another worker's lease.
        answer = self.simulation.users.ask("POST", path, body)
        self._check(answer, {404, 409}, f"a guessed lease of {task_id}")
        polled = self._ask("POST", "/v1/leases", {"types": [PULLED], "wait_seconds": 0, "lease_seconds": LEASE_SECONDS})
        self._check(polled, {403}, "a poll for a type of others")

    def _forge_page(self) -> None:
        """Try to read the victim's list, with the list's page token and with the victim's ids."""
        self.attacks["forged page"] += 1
        page = self.simulation.users.ask("GET", "/v1/tasks", query="limit=1")
        token = page.body.get("next_token") if page is not None and page.status == 200 else None
        if token is not None:
            self._check_listed(self._ask("GET", "/v1/tasks", query=f"limit=10&next_token={token}"))
        if (task_id := self._victim()) is not None:
            self._check_listed(self._ask("GET", "/v1/tasks", query=f"ids={task_id}"))

    def _check_listed(self, answer: Reply | None) -> None:
        if answer is None or answer.status != 200:
            return
        for task in answer.body["tasks"]:
            record = self.simulation.watching.record(task["id"])
            is_own = record is None or record.owner == HOSTILE
            self.simulation.watching.check(is_own, f"{HOSTILE} was shown {task['id']}")

    def _bomb(self) -> None:
        """Create a topology whose condition would produce an enormous value."""
        self.attacks["bomb"] += 1
        first = {"type": works.PLAIN, **_SHORT}
        nodes = {"a": first, "b": {**first, "depends_on": ["a"], "when": _BOMB}}
        self._ask("POST", "/v1/topologies", {"nodes": nodes, "timeout_seconds": 120})

    def _flood(self) -> None:
        """Create many tasks that are due at once, and wait for many tasks that do not end in time."""
        self.attacks["flood"] += 1
        tasks = [{"type": works.PLAIN, "payload": "x" * 2_000, **_SHORT} for _ in range(_FLOOD)]
        self.simulation.time.start_process(partial(self._send, "/v1/tasks/batch", {"tasks": tasks}))
        later: dict[str, Any] = {"type": works.PLAIN, "delay_seconds": 60, **_SHORT}
        for _ in range(_LONG_POLLS):
            self.simulation.time.start_process(partial(self._send, "/v1/tasks", later, "wait_seconds=20"))

    def _take_names(self) -> None:
        """Use the same names as the victim; for another owner, these names must refer to different items."""
        self.attacks["foreign name"] += 1
        lock = {"key": self.random.choice(["a", "b", "db"])}
        self._ask("POST", "/v1/tasks", {"type": works.PLAIN, "lock": lock, **_SHORT})
        if (task_id := self._victim()) is not None:
            child = self._ask("POST", "/v1/tasks", {"type": works.PLAIN, "parent_task_id": task_id, **_SHORT})
            self._check(child, {422}, f"a child of {task_id}")
        self._check(self._ask("PUT", f"/v1/switches/owner/{VICTIM}", {"stopped": True}), {403}, "a switch of another")
        self._check(self._ask("PUT", "/v1/switches/all/all", {"stopped": True}), {403}, "a switch of all")


class HostileSimulation(FaultSimulation):
    """An account in which one owner attacks the simulation's users, who are the operators and the pull workers.

    Attributes:
        hostile: the attacker.
    """

    def __init__(self, seed: int, rate: float | None = None) -> None:
        super().__init__(seed, rate, Theme.TASKS)
        self.environ[Variable.ADMINS] = self.environ[Variable.OPERATORS] = VICTIM
        self.environ[Variable.PULLERS] = f'{{"{PULLED}": ["{VICTIM}"]}}'
        self.hostile = HostileOwner(self)

    def _begin_users(self, end: Millis) -> None:
        super()._begin_users(end)
        self.time.start_process(partial(self.hostile.attack, end))

    def traces_in_others(self) -> list[str]:
        """The victim's tasks whose records or histories name the attacker."""
        ids = set(self.watching.accepted)
        named = [item for item in self.table.every() if HOSTILE in str(item)]
        return sorted({each for each in ids if any(each in str(item) for item in named)})
