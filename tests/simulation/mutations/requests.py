"""Defects in requests about tasks, in leases of pull workers, and in a task's stored data."""

from __future__ import annotations

from tests.simulation.fault_simulation import Theme
from tests.simulation.mutations.mutant import Mutant

MUTANTS = (
    Mutant(
        "each request with an idempotency key creates another task",
        "adapters/dynamodb/keys.py",
        "return _remembered(kept) if kept else wanted",
        "return wanted",
    ),
    Mutant(
        "an event that is delivered again creates another task",
        "services/tasks/create.py",
        "        if order.origin is None:\n            due = due_of(order.spec, now)",
        "        if True:\n            due = due_of(order.spec, now)",
    ),
    Mutant(
        "no task of a batch is sent",
        "services/tasks/create.py",
        "        creator.enqueuer.send_due([end.value for end in ends if isinstance(end, Accepted) and end.is_new])\n"
        "        return ends",
        "        return ends",
    ),
    Mutant(
        "every record of a batch is treated as written",
        "adapters/dynamodb/batches.py",
        'if "Error" not in response:',
        "if True:",
    ),
    Mutant(
        "records that a batch did not write are treated as existing",
        "services/tasks/create.py",
        "made.task.nonce in written or creator.enqueuer.create(made.task)",
        "made.task.nonce in written",
    ),
    Mutant(
        "a running task is cancelled as if it had not begun",
        "domain/tasks/states.py",
        "Move.CANCEL: Rule(NOT_STARTED,",
        "Move.CANCEL: Rule(NOT_STARTED | _ATTEMPTED,",
    ),
    Mutant(
        "a pause replaces a requested cancel",
        "services/tasks/control.py",
        "partial(stronger, requested_action))",
        'lambda _task: {"requested_action": requested_action})',
        also=(
            (
                "if task.requested_action in (requested_action, RequestedAction.CANCEL):",
                "if task.requested_action is requested_action:",
            ),
        ),
    ),
    Mutant(
        "a resumed task is not placed",
        "services/tasks/control.py",
        "return self._placed(task, Move.RESUME, resumes_at, request)",
        "return self._moved(task, Move.RESUME, request)",
    ),
    Mutant(
        "a retried task does not get its used attempts back",
        "services/tasks/control.py",
        'opened: TaskChanges = {\n            "attempt": 0,\n',
        "opened: TaskChanges = {\n",
    ),
    Mutant(
        "a reopened task keeps the expiry of its record",
        "services/tasks/control.py",
        '            "expires_at": None,\n            "requested_action": None,\n',
        '            "requested_action": None,\n',
    ),
    Mutant(
        "a unique key is taken from another task that holds it and has not been attempted",
        "services/unique_keys.py",
        "if task is not None and holds_key(task) else None",
        "if task is not None and task.attempt and holds_key(task) else None",
    ),
    Mutant(
        "a task that is retried takes its unique key from another task",
        "services/unique_keys.py",
        "if status.holder is not None and status.holder.id != task.id:",
        "if status.holder is not None and not status.holder:",
    ),
    Mutant(
        "each replacement of a task invalidates all earlier messages",
        "domain/dispatch/enqueue_plan.py",
        "return (task.next_at <= now and at <= now) or (task.next_at == at and is_same_queue)",
        "return False",
        theme=Theme.TASKS,
    ),
    Mutant(
        "a task that is replaced by a task that is due now is checked at the old due time",
        "domain/dispatch/enqueue_plan.py",
        "return (task.next_at <= now and at <= now)",
        "return at <= now",
        theme=Theme.TASKS,
    ),
    Mutant(
        "a notification is accepted with any fence",
        "services/tasks/attempt_reports.py",
        "if task.fence != fence or task.state is not State.RUNNING:",
        "if task.state is not State.RUNNING:",
    ),
    Mutant(
        "the report that ends a lease is accepted with any fence",
        "services/pull/report.py",
        "if task.fence != key.fence or task.state is not State.RUNNING:\n            return self._repeated",
        "if task.state is not State.RUNNING:\n            return self._repeated",
    ),
    Mutant(
        "a lease is renewed beyond its attempt's timeout",
        "services/pull/report.py",
        "        if now >= overdue_at:\n"
        "            raise AttemptOverdue(task)\n"
        "        until = min(now + key.length, overdue_at)",
        "        until = now + key.length",
    ),
    Mutant(
        "a lease is handed out however little of its time is left",
        "services/pull/lease.py",
        "useful = [lease for lease in leases if lease.left(now) * LEAST_LEASE_SHARE >= length]",
        "useful = list(leases)",
    ),
    Mutant(
        "a bulk request acts on tasks that its filter excludes",
        "services/bulk/filter_actions.py",
        "meant = [task for task in segment if action.means(task)]",
        "meant = list(segment)",
    ),
    Mutant(
        "a switch is ignored",
        "services/start_gates.py",
        "return None if reason is None else self._postponed(SHORTEST_STOP, LONGEST_STOP, reason)",
        "return None",
    ),
    Mutant(
        "a limit on running tasks is ignored",
        "services/start_gates.py",
        "return () if self._known is None else self._known.caps(task)",
        "return ()",
    ),
    Mutant(
        "no call ever tests whether a host with an open circuit has recovered",
        "services/worker/target_caller.py",
        "return self._save(circuit.probed(until)) or self._held(circuit, now)",
        "return self._held(circuit, now)",
    ),
    Mutant(
        "an outcome is not posted to its callback URL",
        "services/outcomes/completion_steps.py",
        "        self.callback_tasks.create(task)\n        self.notice_sender.send",
        "        self.notice_sender.send",
    ),
    Mutant(
        "contents outside an open record expire",
        "services/content_retention.py",
        "    for content in (*task.contents_outside, *_lines(contents, task)):\n"
        "        contents.retain(task.id, content, expiry)",
        "    for content in task.contents_outside[:0]:\n        contents.retain(task.id, content, expiry)",
        also=(
            (
                "    for content in kept:\n        contents.retain(task.id, content, expiry)",
                "    del expiry",
            ),
        ),
    ),
    Mutant(
        "contents outside an ended record never expire",
        "services/content_retention.py",
        "    contents.expire_items(task.id, expiry)\n    for content",
        "    for content",
    ),
    Mutant(
        "contents outside an ended record expire before the record",
        "domain/tasks/task.py",
        "return Expiry(expires_at + CONTENT_OUTLIVES_RECORD)",
        "return Expiry(expires_at - CONTENT_OUTLIVES_RECORD)",
    ),
    Mutant(
        "an idempotency key expires after an hour",
        "domain/limits.py",
        "IDEMPOTENCY_KEY_LIFE = DAY",
        "IDEMPOTENCY_KEY_LIFE = HOUR",
    ),
    Mutant(
        "switches that were read long ago still apply",
        "services/start_gates.py",
        "return self._known if now - self._known_at < SWITCHES_TRUST else None",
        "return self._known",
    ),
    Mutant(
        "a task of an ordered key does not wait for its turn",
        "services/order_lines.py",
        "            if (ahead := self._ahead(line, task)) is not None:",
        "            if (ahead := self._ahead(line, task)) is not None and False:",
        also=(
            (
                "            if line.reaches(task.order_number) and self._give_turn(line, task.id):",
                "            if True:",
            ),
        ),
    ),
    Mutant(
        "a task of an ordered key blocks the line only while it has a lease",
        "domain/order_lines.py",
        "    if not task.is_terminal or stops_line(task):\n        return True",
        "    if stops_line(task):\n        return True\n    if not task.is_terminal:\n"
        "        return task.lease_expires_at is not None",
    ),
    Mutant(
        "a task receives a signal no matter when the signal was sent",
        "domain/tasks/event_waits.py",
        "TaskId.of(max(0, max(task.created_at, task.reopened_at or 0) - before), 0, 0)",
        "TaskId.of(max(0, before - before), 0, 0)",
    ),
    Mutant(
        "a task receives a signal that does not meet its condition",
        "domain/tasks/event_waits.py",
        "budget) is True",
        "budget) is not None",
    ),
    Mutant(
        "a signal that meets a condition wakes no task",
        "services/signals.py",
        "not sending.meets(task.target.when)",
        "task.target.when",
    ),
    Mutant(
        "the tasks that wait for a signal are not checked before their time",
        "services/signals.py",
        "self.enqueuer.write(task, Move.REPLACE, now, Guard",
        "self.enqueuer.write(task, Move.REPLACE, task.next_at, Guard",
    ),
)
