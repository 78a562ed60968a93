"""Mistakes in leases, attempts, outcomes and dead letters."""

from __future__ import annotations

from tests.simulation.fault_simulation import Theme
from tests.simulation.mutations.mutant import Mutant

MUTANTS = (
    Mutant(
        "a raised rate forgets the starts that were counted before",
        "domain/rates.py",
        "starts = now - (-(counted - now) * self.pace.interval // interval)",
        "starts = self.at - 9 * interval",
        theme=Theme.TASKS,
    ),
    Mutant(
        "each claim of a task says that it has started late",
        "domain/change_events.py",
        "if task.started_late and not (before is not None and before.started_late):",
        "if (task.lateness or 0) >= 60_000 and (before is None or before.started_at is None):",
        theme=Theme.TASKS,
    ),
    Mutant(
        "a late start is told by its heartbeats alone",
        "domain/tasks/attempt_run.py",
        "        if self.was_called:\n",
        "        if not self.was_called:\n",
        theme=Theme.TASKS,
    ),
    Mutant(
        "the end of an attempt is written without its fence",
        "services/outcomes/outcome.py",
        "condition = replace(guard or Guard(fence=task.fence), unawaited=not follows)",
        "condition = replace(guard or Guard(), unawaited=not follows)",
    ),
    Mutant(
        "a retry is written without its fence",
        "services/outcomes/outcome.py",
        "result = self.enqueuer.move(task, Move.RETRY, at, Guard(fence=task.fence, not_cancelled=True), sets)",
        "result = self.enqueuer.move(task, Move.RETRY, at, Guard(not_cancelled=True), sets)",
    ),
    Mutant(
        "a lease is taken over without regard to its end",
        "domain/tasks/attempt_run.py",
        "guard=replace(guard, leased_until_before=self.now - MAX_CLOCK_DIFFERENCE)",
        "guard=replace(guard, leased_until_before=self.now + 60_000)",
    ),
    Mutant(
        "the fence does not grow",
        "domain/tasks/attempt_run.py",
        'adds={"fence": 1, "attempt": 1},',
        'adds={"fence": 0, "attempt": 1},',
    ),
    Mutant(
        "leases are not renewed",
        "services/worker/batch.py",
        "            self._run_in_background(id(delivery_state), partial(self._heartbeat, delivery_state))",
        "            delivery_state.renew_at += 10_000",
    ),
    Mutant(
        "a worker that cannot renew its lease goes on",
        "services/worker/batch.py",
        '                self._lose("a lease could not be renewed", delivery_state)',
        "                pass",
    ),
    Mutant(
        "the message of a leased task is deleted",
        "domain/dispatch/message_deletion.py",
        'return RedeliverMessage((task.lease_expires_at or now) + LEASE_RETURN_MARGIN, "leased")',
        'return DeleteMessage("leased")',
    ),
    Mutant(
        "a heartbeat that comes late takes back what a later one has given",
        "services/worker/batch.py",
        "guard = Guard(fence=task.fence, leased_until_before=until)",
        "guard = Guard(fence=task.fence)",
    ),
    Mutant(
        "a heartbeat is heard without regard to its fence",
        "services/pull/report.py",
        "guard = Guard(fence=key.fence, leased_until_before=until)",
        "guard = Guard(leased_until_before=until)",
        also=(
            ("if task.fence != key.fence or task.state is not State.RUNNING", "if task.state is not State.RUNNING"),
            ("result.task is None or result.task.fence != key.fence or result", "result.task is None or result"),
        ),
    ),
    Mutant(
        "the margin for clocks is forgotten",
        "domain/tasks/attempt_run.py",
        "guard=replace(guard, leased_until_before=self.now - MAX_CLOCK_DIFFERENCE)",
        "guard=replace(guard, leased_until_before=self.now + MAX_CLOCK_DIFFERENCE)",
    ),
    Mutant(
        "clocks are taken to agree: the margin for their difference is 0",
        "domain/operating_parameters.py",
        "MAX_CLOCK_DIFFERENCE = 5 * SECOND",
        "MAX_CLOCK_DIFFERENCE = 0",
    ),
    Mutant(
        "PREPARE and BEGIN are written without a fence",
        "services/worker/attempt_lease.py",
        "result = self.tasks.apply(Write(task.id, move, self.runtime.nonce(), Guard(fence=task.fence)))",
        "result = self.tasks.apply(Write(task.id, move, self.runtime.nonce(), Guard()))",
    ),
    Mutant(
        "a deferral is written without its fence",
        "services/outcomes/outcome.py",
        "Write(task.id, Move.DEFER, self.runtime.nonce(), Guard(fence=task.fence), sets)",
        "Write(task.id, Move.DEFER, self.runtime.nonce(), Guard(), sets)",
    ),
    Mutant(
        "a pause by the attempt is written without its fence",
        "services/outcomes/outcome.py",
        "guard = Guard(fence=task.fence, not_cancelled=True)\n        write = Write(task.id, Move.YIELD",
        "guard = Guard(not_cancelled=True)\n        write = Write(task.id, Move.YIELD",
    ),
    Mutant(
        "a retry forgets that a cancel was asked for",
        "services/outcomes/outcome.py",
        "Move.RETRY, at, Guard(fence=task.fence, not_cancelled=True), sets)",
        'Move.RETRY, at, Guard(fence=task.fence), {**sets, "requested_action": None})',
    ),
    Mutant(
        "an attempt that was asked to stop is taken over and run",
        "services/worker/attempt.py",
        "        if over := _requested(task) or expired(",
        "        if over := expired(",
    ),
    Mutant(
        "a lease that no pull worker received is an attempt",
        "domain/tasks/attempt_run.py",
        'adds={"fence": 1, "attempt": int(is_attempt)}',
        'adds={"fence": 1, "attempt": 1}',
    ),
    Mutant(
        "a lease that was acknowledged is taken over as if nobody had received it",
        "services/pull/report.py",
        '{"lease_expires_at": until, **acknowledged(task)}',
        '{"lease_expires_at": until}',
    ),
    Mutant(
        "leases that no pull worker receives are never attempts",
        "domain/tasks/attempt_run.py",
        "is_attempt = unacknowledged > MAX_UNACKNOWLEDGED_LEASES",
        "is_attempt = False",
    ),
    Mutant(
        "a lease lasts its whole length although nobody has acknowledged it",
        "domain/tasks/pull_leases.py",
        "return self.length if self.acknowledge_within is None else self.acknowledge_within",
        "return self.length",
    ),
    Mutant(
        "attempts do not count",
        "domain/tasks/attempt_run.py",
        'adds={"fence": 1, "attempt": 1},',
        'adds={"fence": 1, "attempt": 0},',
    ),
    Mutant(
        "one attempt more is made than is allowed",
        "domain/tasks/task_options.py",
        "return attempt < self.max_attempts",
        "return attempt <= self.max_attempts",
    ),
    Mutant(
        "a lost attempt is made again beyond what is allowed",
        "services/worker/attempt.py",
        "if _is_spent(task):\n            return outcome",
        "if task.attempt > task.retry.max_attempts + 1:\n            return outcome",
    ),
    Mutant(
        "the last attempt is never made",
        "domain/tasks/task_options.py",
        "return attempt < self.max_attempts",
        "return attempt + 1 < self.max_attempts",
    ),
    Mutant(
        "a pause costs an attempt",
        "services/outcomes/outcome.py",
        '"attempt": task.attempt - 1, "lease_expires_at": None}\n        guard',
        '"attempt": task.attempt, "lease_expires_at": None}\n        guard',
    ),
    Mutant(
        "an attempt that does not end in time is let go on",
        "services/worker/batch.py",
        "return end is not None and self.worker.runtime.now() >= end + OVERDUE_GRACE",
        "return False",
    ),
    Mutant(
        "each phase of an attempt has its timeout anew",
        "services/worker/target_caller.py",
        "                return late\n            delivery_state.started_at = now",
        "                return late\n        delivery_state.started_at = now",
    ),
    Mutant(
        "a retry begins beside a target that has not ended",
        "domain/tasks/attempt_results.py",
        "after_it = 0 if self.process_ends_at is None else self.process_ends_at + LEASE_RETURN_MARGIN",
        "after_it = 0",
    ),
    Mutant(
        "a target is called when its task is claimed, not when it is due",
        "services/worker/attempt.py",
        "        self.runtime.clock.sleep_until(task.next_at)\n        started",
        "        started",
    ),
    Mutant(
        "a paused task may be claimed",
        "domain/tasks/states.py",
        "        STARTABLE | _ATTEMPTED, State.RUNNING,",
        "        STARTABLE | _ATTEMPTED | {State.PAUSED}, State.RUNNING,",
    ),
    Mutant(
        "what follows an outcome is not taken over",
        "domain/dispatch/message_deletion.py",
        "return FollowUp(task) if task.is_terminal else Undo(task)",
        'return DeleteMessage("ended") if task.is_terminal else Undo(task)',
    ),
    Mutant(
        "a rollback is not taken over",
        "domain/dispatch/message_deletion.py",
        "return FollowUp(task) if task.is_terminal else Undo(task)",
        'return FollowUp(task) if task.is_terminal else DeleteMessage("to be undone")',
    ),
    Mutant(
        "a running attempt is not told what its user asks",
        "services/worker/target_caller.py",
        "requested_action=lambda: delivery_state.requested_action,",
        "requested_action=lambda: None,",
    ),
    Mutant(
        "a dead letter is thrown away",
        "services/worker/dead_letters.py",
        "task = self.tasks.read(message.task_id)\n        if task is None",
        "task = self.tasks.read(message.task_id)\n        if task is None or not task.is_terminal",
    ),
    Mutant(
        "a dead letter ends a task whose attempts are not spent",
        "services/worker/dead_letters.py",
        "spent = not task.retry.allows_after(task.attempt)",
        "spent = True",
    ),
    Mutant(
        "a dead letter ends a task whose lease lives",
        "services/worker/dead_letters.py",
        "if over_at <= now and spent and not",
        "if spent and not",
    ),
    Mutant(
        "a result is stored by a name that every attempt shares, and never expires",
        "services/outcomes/outcome.py",
        'f"result.{self.runtime.nonce()}", result, expiry)',
        '"result", result)',
    ),
    Mutant(
        "attempts of a rate start twice as often as they may",
        "domain/rates.py",
        "return Pace(-(-(window + slack) // limit), burst, slack)",
        "return Pace(window // (2 * limit), burst, slack)",
    ),
    Mutant(
        "a task that has expired is started",
        "domain/tasks/attempt_run.py",
        "or now <= start_by:",
        "or now <= start_by + 600_000:",
    ),
    Mutant(
        "what is no Exception is not caught where handlers are called",
        "adapters/targets/python_handlers.py",
        "except BaseException as error:  # noqa: BLE001 - a handler may raise what it likes",
        "except Exception as error:  # noqa: BLE001 - a handler may raise what it likes",
    ),
    Mutant(
        "a text that UTF-8 cannot write is not escaped",
        "domain/json_values.py",
        'return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()',
        "return text",
    ),
    Mutant(
        "a result that cannot be written is taken for a defect of the worker",
        "adapters/targets/python_handlers.py",
        "    except ValueRefused as refused:\n        why = str(refused)\n"
        "    except BaseException as error:  # noqa: BLE001 - the value may be of the author's own class\n"
        '        why = f"{class_name(error)}: {message_of(error)}"\n',
        "    except KeyError as refused:\n        why = str(refused)\n",
    ),
    Mutant(
        "a later attempt does not read the stored steps",
        "services/attempt_steps.py",
        "return {step.name: step.result for step in steps if step.phase == phase}",
        "return {}",
    ),
)
