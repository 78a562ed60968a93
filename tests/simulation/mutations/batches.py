"""Defects in batches of new records, which are written without separate timers."""

from __future__ import annotations

from tests.simulation.mutations.mutant import Mutant

MUTANTS = (
    Mutant(
        "a batch inserts a record without a timer although its minute was already read",
        "services/enqueue.py",
        "if not (plan.timer or task.order is not None",
        "if not (task.order is not None",
        test="tests/scenarios/test_due_times.py -k repeated_after_its_minutes",
    ),
    Mutant(
        "a batch inserts tasks of an ordered key without places in its line",
        "services/enqueue.py",
        "if not (plan.timer or task.order is not None or self._is_watched(task))",
        "if not (plan.timer or self._is_watched(task))",
    ),
    Mutant(
        "a batch inserts tasks that need a lateness check, but sets no timer for that check",
        "services/enqueue.py",
        "if not (plan.timer or task.order is not None or self._is_watched(task))",
        "if not (plan.timer or task.order is not None)",
        test="tests/scenarios/test_notices.py::test_each_task_of_a_batch_has_its_own_late_notice",
    ),
    Mutant(
        "only the first task of a batch is sent",
        "services/tasks/create.py",
        "for end in ends if isinstance(end, Accepted) and end.is_new])",
        "for end in ends if isinstance(end, Accepted) and end.is_new][:1])",
    ),
    Mutant(
        "every record of a batch is marked as sent",
        "services/enqueue.py",
        "replace(task, sent=plan.direct)\n            for task, plan in plans",
        "replace(task, sent=True)\n            for task, plan in plans",
    ),
    Mutant(
        "the tasks of an ordered key in a batch have the same number",
        "services/tasks/create.py",
        "following[order.spec.order.key] = number + 1",
        "following[order.spec.order.key] = number",
    ),
    Mutant(
        "if a batch gets no response, all its records are assumed to be written",
        "adapters/dynamodb/batches.py",
        "        except Unavailable:\n            return\n        for place",
        "        except Unavailable:\n            written.extend(range(first, first + len(batch)))\n"
        "            return\n        for place",
    ),
)
