"""Defects in enqueuing tasks, and in the trigger."""

from __future__ import annotations

from tests.simulation.mutations.mutant import Mutant

MUTANTS = (
    Mutant(
        "the trigger advances although messages were refused",
        "services/trigger/dispatcher.py",
        "return Served(sent, frozenset(queue_of(each.message) for each in unsent))",
        "return Served(sent, frozenset())",
    ),
    Mutant(
        "recovery scans do not find overdue tasks that were not claimed",
        "domain/dispatch/enqueue_plan.py",
        "    if entry.state in STARTABLE or entry.waits_for_tasks:\n        return entry.next_at <= now\n",
        "    if entry.state in STARTABLE or entry.waits_for_tasks:\n        return False\n",
    ),
    Mutant(
        "a check outside a record's home minute gets no timer",
        "domain/dispatch/enqueue_plan.py",
        "return EnqueuePlan(timer=not in_own_minute, direct=direct)",
        "return EnqueuePlan(timer=False, direct=direct)",
    ),
    Mutant(
        "a message is rarely sent directly",
        "domain/dispatch/enqueue_plan.py",
        "return minute_of(at) <= minute_of(now + look_ahead + DIRECT_SLACK)",
        "return minute_of(at) <= minute_of(now)",
    ),
    Mutant(
        "a task that is moved to a minute that was already read gets no message",
        "services/enqueue.py",
        "        if isinstance(result, Applied) and _needs_message(task, result.task, move):\n"
        "            self.send_due([result.task])\n",
        "",
    ),
    Mutant(
        "the trigger reads no minute in advance",
        "composition/schedules.py",
        "look_ahead=look_ahead,\n            due_messages",
        "look_ahead=0,\n            due_messages",
    ),
    Mutant(
        "a recovery scan advances although SQS refused its messages",
        "services/trigger/dispatcher.py",
        "for each in left])\n        return Served(sent.sent, sent.refused | refused)",
        "for each in left])\n        return Served(sent.sent, frozenset(refused))",
    ),
    Mutant(
        "a task that is created after its home minute gets no timer",
        "services/enqueue.py",
        "        if plan.timer:\n"
        "            self.tasks.add_timer(_timer_for(task, task.generation, task.next_at, sent=plan.direct))\n"
        "        self._watch_lateness",
        "        self._watch_lateness",
    ),
    Mutant(
        "the trigger skips timers",
        "domain/dispatch/enqueue_plan.py",
        "if isinstance(item, Timer):\n        place =",
        "if isinstance(item, Timer):\n        return None\n        place =",
    ),
    Mutant(
        "messages are delayed until after their task's due time",
        "domain/dispatch/enqueue_plan.py",
        "Precision.NORMAL: 60,",
        "Precision.NORMAL: -999,",
    ),
    Mutant(
        "a shard that could not be read is treated as read",
        "services/trigger/shard_group_reader.py",
        "                shard.failed = True\n",
        "                shard.more = False\n",
    ),
    Mutant(
        "only the last of several unread minutes is read",
        "domain/dispatch/cursors.py",
        "range(self.upto + 1, minute + 1)",
        "(minute,)",
    ),
    Mutant(
        "shards that were added are not read",
        "services/trigger/dispatcher.py",
        "shards = shards_in(group, history.number)",
        "shards = shards_in(group, min(2, history.number))",
    ),
    Mutant(
        "the timer of a moved task is written after its record",
        "services/enqueue.py",
        "            self.tasks.add_timer(_timer_for(after, generation, at, sent=plan.direct))\n"
        "        self.watch_change(task, move, sets, generation)\n"
        '        sets = {**sets, "next_at": at, "generation": generation, "sent": plan.direct}\n'
        "        return self.tasks.apply(Write(task.id, move, self.runtime.nonce(), guard, sets), key_write)",
        "            pass\n"
        "        self.watch_change(task, move, sets, generation)\n"
        '        sets = {**sets, "next_at": at, "generation": generation, "sent": plan.direct}\n'
        "        result = self.tasks.apply(Write(task.id, move, self.runtime.nonce(), guard, sets), key_write)\n"
        "        if plan.timer:\n"
        "            self.tasks.add_timer(_timer_for(after, generation, at, sent=plan.direct))\n"
        "        return result",
    ),
    Mutant(
        "no reminder is set for a task that its target has accepted",
        "services/enqueue.py",
        "        now = self.runtime.now()\n"
        "        plan = enqueue_plan(task.id, at, now, self.look_ahead)\n"
        "        if plan.timer:\n"
        "            self.tasks.add_timer(_timer_for(task, task.generation, at, sent=plan.direct))\n"
        "        if plan.direct:",
        "        now = self.runtime.now()\n"
        "        plan = enqueue_plan(task.id, at, now, self.look_ahead)\n"
        "        if False:",
    ),
    Mutant(
        "TTL deletes a timer that the trigger may not have read yet",
        "domain/operating_parameters.py",
        "TIMER_LIFE = 400 * DAY",
        "TIMER_LIFE = 3 * DAY",
    ),
    Mutant(
        "recovery scans find neither expired leases nor unfinished follow-ups",
        "domain/dispatch/enqueue_plan.py",
        "return entry.next_at <= now and (entry.leased_until or 0) + MAX_CLOCK_DIFFERENCE <= now",
        "return False",
    ),
    Mutant(
        "the first scan does not check a running task again",
        "services/trigger/dispatcher.py",
        "        self.runtime.executor.map(self._rescan, rescanned)\n",
        "",
    ),
)
