"""The readers of the table's stream, and the invariants of their results under all faults.

Counts, events, live updates and the archive are compared with the records and with the received calls.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.task_items import ATTRIBUTES, task_of
from duetime.domain.archive_objects import TASKS_PREFIX
from duetime.domain.change_events import EventKind
from duetime.domain.tasks.targets import HandlerTarget
from duetime.domain.tasks.task import ContentPlace
from duetime.domain.times import HOUR, MINUTE, SECOND
from duetime.environment_variables import Variable
from duetime_testing.simulation.faults import Fault
from duetime_testing.simulation.table_stream import SimulatedTableStream
from tests.simulation.schedule_watching import OWNER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.tasks.task import Task
    from duetime_testing.simulation.machines import Machine
    from tests.simulation.fault_simulation import FaultSimulation

BUCKET, BUS, CONNECTION = "archive", "default", "watcher="
_STATE, _VERSION = ATTRIBUTES["state"].name, ATTRIBUTES["version"].name
_REPEATS = 0.05
"""The fraction of processed batches that are delivered again."""
_ARCHIVE_RATE = 0.15
"""The fraction of the archive function's calls that fail, even long after everything else has ended."""
_ARCHIVE_FAULTS = (Fault.THROTTLED, Fault.AWAY, Fault.LOST, Fault.CRASH_BEFORE, Fault.CRASH_AFTER)
_MOST_RECOUNTS = 1_000
"""The maximum number of recount runs. Each run reads only a few pages, and the simulated tables' pages are small."""
_CONNECTING = 5
_ENDED = frozenset({EventKind.TASK_ENDED, EventKind.TASK_FAILED, EventKind.TOPOLOGY_ENDED})


class StreamWatching:
    """In some simulations, lets the functions read the stream, and watches their results.

    Attributes:
        counted: the summary of each owner at the end, and the correct summary.
        archived: the number of tasks that were checked in the archive.
        published: the number of events that were checked.
        pushed: the number of live updates that were checked.
    """

    def __init__(self, account: FaultSimulation) -> None:
        self._account = account
        self._changes: SimulatedTableStream | None = None
        self._removals: SimulatedTableStream | None = None
        self._faults = Random(f"{account.seed} archive")  # noqa: S311 - repeatable on purpose
        self._states: dict[tuple[str, int], str] = {}
        self._removed: dict[str, Task] = {}
        self._kept: set[tuple[str, str]] = set()
        """The contents that existed when their records were deleted."""
        self._returned: set[str] = set()
        self._is_watching = False
        self.counted: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
        self.archived = self.published = self.pushed = 0

    def begin(self) -> None:
        """Start to deliver each write to the stream's readers, and let a client watch all tasks."""
        account = self._account
        account.s3.create_bucket(Bucket=BUCKET)
        account.environ |= {Variable.ARCHIVE_BUCKET: BUCKET, Variable.EVENT_BUS: BUS}
        self._changes = SimulatedTableStream(account, repeats=_REPEATS if account.faulty else 0.0)
        self._removals = SimulatedTableStream(account, repeats=_REPEATS, function="archive")
        account.time.start_process(self._connect)

    def fault_for(self, machine: Machine) -> Fault | None:
        """The fault of a call of the archive function, in addition to the faults that other calls may have."""
        is_failing = machine.function == "archive" and self._account.faulty
        if not is_failing or self._faults.random() >= _ARCHIVE_RATE:
            return None
        fault = self._faults.choice(_ARCHIVE_FAULTS)
        self._account.count(f"archive {fault.name.lower()}")
        return fault

    def written(self, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> None:
        """Record the state of each version of a task, and the deletions of tasks."""
        if self._changes is None:
            return
        if new is not None and _STATE in new:
            self._states[new[schema.SORT_KEY]["S"], int(new[_VERSION]["N"])] = task_of(new).state.value
        elif old is not None and _STATE in old:
            task = task_of(old)
            self._removed[task.id.text] = task

    def expired(self) -> None:
        """Record which contents exist after TTL has deleted some items, before the archive function is called."""
        for task in self._removed.values():
            for content in (task.payload, task.result):
                if content is not None and content.place is ContentPlace.ITEM:
                    key = f"{schema.CONTENT_PREFIX}{task.id}", content.name
                    if self._account.table.get(key) is not None:
                        self._kept.add(key)

    def returned(self, task_id: str) -> None:
        """Record that a target has returned without an error, or has accepted the work."""
        self._returned.add(task_id)

    # The following methods simulate the client of live updates.

    def _connect(self) -> None:
        """Open a connection and subscribe to all tasks; retry if there is no response."""
        account = self._account
        for _ in range(_CONNECTING):
            answer = account.users.ask("POST", "/v1/watch-tickets")
            ticket = answer.body["ticket"] if answer is not None and answer.status == 201 else ""
            if ticket and self._sent("CONNECT", queryStringParameters={"ticket": ticket}):
                account.connections.received[CONNECTION] = []
                message = json.dumps({"do": "subscribe", "ref": "1", "topic": "mine"})
                self._is_watching = self._sent("MESSAGE", body=message)
                return
            account.take(2 * SECOND)

    def _sent(self, kind: str, **more: object) -> bool:
        context = {"connectionId": CONNECTION, "eventType": kind, "requestId": "request"}
        end = self._account.wait_for(self._account.invoke("watch", {"requestContext": context, **more}))
        return not end.failed and bool(end.answer["statusCode"] == 200)

    # The following methods check the invariants.

    def check_end(self) -> None:
        """Compare all results with the records and calls after everything has ended."""
        if self._changes is None:
            return
        end = self._account.time.now() + HOUR
        while not self._changes.is_read and self._account.time.now() < end:
            self._account.take(MINUTE)
        self._check_events()
        self._check_live_updates()
        self._check_counts()

    def _check_events(self) -> None:
        """Check that an event about an end has its version's state, and that a target returned before a success.

        Without faults, each end must have an event.
        """
        check, found = self._account.watching.check, set()
        for entry in self._account.event_bus.taken:
            if entry["DetailType"] not in _ENDED:
                continue
            detail = json.loads(entry["Detail"])
            name, state = detail["task_id"], detail["state"]
            self.published += 1
            found.add((name, state))
            stored = self._states.get((name, detail["version"]))
            check(stored == state, f"an event says that {name} is {state}, and its version {stored}")
            task = self._account.watching.record(name)
            # The target of a deleted task is unknown, so the task may have waited for an event.
            if state == "succeeded" and task is not None and not task.erased and isinstance(task.target, HandlerTarget):
                is_seen = task.pull_queue or name in self._returned
                check(bool(is_seen), f"an event says that {name} has succeeded, and its target has not returned")
        if not self._account.faulty:
            for name, states in self._account.watching.outcomes.items():
                left = {str(state) for state in states} - {state for each, state in found if each == name}
                check(not left, f"{name} was {left}, and no event says so")

    def _check_live_updates(self) -> None:
        """Check that each pushed change is true, and that without faults no change is missing."""
        check, view, told = self._account.watching.check, dict[str, tuple[int, str | None]](), True
        for text in self._account.connections.received.get(CONNECTION, ()):
            frame = json.loads(text)
            told = told and frame["kind"] != "stale"
            for change in frame["changes"] if frame["kind"] == "change" else ():
                name, version, item = change["id"], change["version"], change["item"]
                if item is not None and item["kind"] == "task":
                    self.pushed += 1
                    stored = self._states.get((name, version))
                    check(item["state"] == stored, f"{name} was pushed as {item['state']}, and was {stored}")
                    view[name] = max(view.get(name, (0, None)), (version, item["state"]))
        if self._account.faulty or not self._is_watching or not told:
            return
        for name in self._account.watching.accepted:
            task = self._account.watching.record(name)
            if name in view and task is not None and not task.erased:
                is_so = view[name] == (task.version, task.state)
                check(is_so, f"{name} was last pushed as {view[name]}, and is {(task.version, task.state.value)}")

    def _check_counts(self) -> None:
        """Check that the summary counts each record once."""
        account, stream = self._account, self._changes
        assert stream is not None
        # The scheduled rule causes a recount every five minutes. After days of silence, the counts start again.
        for _ in range(_MOST_RECOUNTS):
            account.wait_for(account.invoke("broadcast", {"recount": "continue"}))
            if self._summary_of(OWNER)["is_complete"]:
                break
            account.take(MINUTE)
        for owner in sorted({task.owner for task in account.watching.tasks()}):
            is_still = False
            while not is_still:
                while not stream.is_read:
                    account.take(SECOND)
                summary = self._summary_of(owner)
                account.watching.check(summary["is_complete"], f"the summary of {owner} is never complete")
                of_owner = [task for task in account.watching.tasks() if task.owner == owner and not task.erased]
                states = Counter(task.state.value for task in of_owner)
                shown = {name: summary[name] for name in ("states", "total")}
                self.counted[owner] = shown, {"states": dict(sorted(states.items())), "total": states.total()}
                # A task whose retry becomes due only now may have been written in the meantime.
                is_still = stream.is_read
            found, wanted = self.counted[owner]
            account.watching.check(found == wanted, f"the summary of {owner} is {found}, and should be {wanted}")

    def _summary_of(self, owner: str) -> dict[str, Any]:
        """The summary of an owner, taken from the first successful response."""
        while True:
            reply = self._account.users.ask("GET", "/v1/summary", headers={"x-duetime-owner": owner})
            if reply is not None and reply.status == 200:
                return dict(reply.body)
            self._account.take(SECOND)

    def check_archive(self) -> None:
        """Check that each task that TTL deleted is in the archive, in its last state and with its stored data."""
        if self._removals is None:
            return
        account = self._account
        account.time.run_while(lambda: not self._is_archived(), account.time.now() + HOUR)
        account.watching.check(self._is_archived(), "the archive's function has not read what was removed")
        lines = [
            json.loads(line)
            for (bucket, key), body in account.s3.objects.items()
            if bucket == BUCKET and key.startswith(TASKS_PREFIX)
            for line in gzip.decompress(body).splitlines()
        ]
        found = {(line["id"], line["version"]): line for line in lines}
        for name, task in self._removed.items():
            line = found.get((name, task.version))
            wanted = None if task.erased else task.state.value
            state = None if line is None else line["state"]
            account.watching.check(state == wanted, f"{name} was removed as {wanted}, and archived as {state}")
            if line is not None:
                self._check_line(task, line)
        self.archived = len(self._removed)

    def _is_archived(self) -> bool:
        return self._removals is not None and self._removals.is_read

    def _check_line(self, task: Task, line: Mapping[str, Any]) -> None:
        """Check that an archived task has all contents that still existed, and all attempts of its record."""
        check = self._account.watching.check
        for name, content in (("payload", task.payload), ("result", task.result)):
            if content is not None and content.place is ContentPlace.ITEM:
                key = f"{schema.CONTENT_PREFIX}{task.id}", content.name
                is_lacking = name in line["content_expired"] and key in self._kept
                check(not is_lacking, f"{task.id} was archived without its {name}, which was there")
        fences = {each.fence for each in task.attempt_history} - {each["fence"] for each in line["attempts"]}
        check(not fences, f"{task.id} was archived without its attempts {fences}")
