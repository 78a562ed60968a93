"""Lists how long each kind of item is needed, and which functions write or decide when an item can be removed.

An item's TTL is never before the last moment at which the item may be needed. All code that writes the attribute, or
decides on its value, is listed here with its rule and the test of the rule; `test_time_to_live` fails for unlisted
code.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

CORE = Path(__file__).parents[1] / "layers/duetime/python/duetime"


@dataclass(frozen=True)
class Rule:
    """The rule for a kind of item.

    Attributes:
        needed_until: the last moment at which the item may be needed.
        shown_by: the test that shows that the TTL is never before this moment.
    """

    needed_until: str
    shown_by: str


RECORD = Rule(
    "the end of the task's retention after it has ended; without limit while the task is open or reopened",
    "test_a_record_has_an_expiry_only_after_its_task_has_ended",
)
CONTENT = Rule("as long as a record can refer to it", "test_payload_and_result_expire_days_after_the_record")
TRACEBACK = Rule(
    "the end of the retention after its attempt; only people read it",
    "test_a_traceback_is_kept_for_the_retention",
)
STEP = Rule(
    "the next attempt of its task; an attempt that waits for longer than the documented time runs the step again",
    "test_a_step_is_kept_for_longer_than_its_record",
)
TIMER = Rule("its time plus the longest outage of the trigger", "test_a_timer_is_kept_for_a_year_after_its_time")
LOCK = Rule(
    "the end of every hold, by every clock; a renewal knows only its own hold, so the longest possible hold",
    "test_a_lock_is_never_removed_while_it_is_held",
)
WAITER = Rule(
    "the end of the longest hold before it; the holder that releases the lock admits it",
    "test_a_place_in_a_line_is_kept_for_as_long_as_the_lock_can_be_held",
)
DEPENDENT = Rule(
    "the next check of the waiting task, which writes it again at least once a day",
    "test_the_item_of_a_dependent_is_kept_past_the_next_check",
)
SIGNAL = Rule(
    "the check of a task created before it; a task that is due after the documented time waits for another signal",
    "test_a_signal_is_kept_for_as_long_as_a_task_can_wait",
)
EVENT_WAITER = Rule(
    "the end of the task's wait; a task that waits again is noted again",
    "test_the_item_of_a_waiting_task_is_kept_past_its_wait",
)
KEY = Rule("the documented time for which a key is remembered", "test_an_idempotency_key_is_kept_for_a_day")
UNIQUE_KEY = Rule(
    "as long as the record of the task that it names, because a retry takes the key again",
    "test_a_unique_keys_item_expires_only_after_its_task_has_ended",
)
GROUP = Rule(
    "as long as tasks can join it, members are open, and its id is documented to stay taken",
    "test_each_task_that_joins_a_group_renews_its_expiry",
)
GROUP_MEMBER = Rule(
    "without limit while the task is open; otherwise until its group, which is kept for a limited time, is complete",
    "test_a_member_is_kept_while_it_is_open",
)
ORDER_LINE = Rule(
    "the end of the tasks in line, whose places never expire; without the turn, the first place decides",
    "test_the_places_in_line_are_kept_after_the_turn_expires",
)
CIRCUIT = Rule("as long as the circuit is open", "test_a_circuit_is_kept_for_longer_than_it_is_open")
RATE = Rule(
    "the time of its last place, and as far ahead as it has counted starts; without limit while paused or pinned",
    "test_a_rate_is_kept_for_longer_than_any_wait_for_it",
)
QUOTA_USE = Rule(
    "the end of a rate's counted windows, of a place, or of the longest topology or lease",
    "test_usage_items_are_kept_for_as_long_as_they_count",
)
MARKER = Rule(
    "the latest moment, by every clock, at which a write that started before the deletion can arrive",
    "test_a_deletion_marker_is_kept_longer_than_any_late_write",
)
TOPOLOGY = Rule("as long as the topology's run", "test_the_items_for_counting_nodes_are_kept_for_the_longest_run")
NODE = Rule(
    "the end of its topology's retention, as long as the topology can be run again",
    "test_a_topology_that_outlasts_the_retention_succeeds",
)

BULK = Rule(
    "the end of the time for which it can be read after it has ended", "test_a_bulk_operation_can_be_read_after_its_end"
)
BULK_LATEST = Rule(
    "as long as an operation on the topology can run and be read",
    "test_the_pointer_to_a_topologys_latest_operation_is_kept",
)

SUMMARY_STEPS = Rule(
    "the last moment at which the stream can deliver the write again; the stream deletes records after a day",
    "test_a_counted_step_is_kept_for_longer_than_the_stream",
)
SUMMARY_RECOUNT = Rule(
    "the last moment at which the summary uses it; the summary uses a recount for 60 days",
    "test_a_recount_is_stored_longer_than_it_is_used",
)
SUMMARY_COUNTS = Rule(
    "the last moment at which a process that knows no later generation can change or read these counts",
    "test_the_counts_of_an_old_generation_expire_after_a_day",
)
TASK_LIST = Rule(
    "as long as the record of the task that it names; a task that ends late is listed again",
    "test_a_tasks_list_entries_are_kept_for_longer_than_its_record",
)
WATCH_TICKET = Rule("the time for which it can be used", "test_a_ticket_is_kept_for_as_long_as_it_can_be_used")
WATCH_CONNECTION = Rule(
    "the longest time for which the gateway keeps a connection open",
    "test_a_connection_is_kept_for_longer_than_it_can_be_open",
)

API_KEY = Rule(
    "the end of the time for which it can be seen after its end; it is refused then with or without its item",
    "test_the_item_of_a_revoked_or_expired_key_expires_30_days_later",
)

LINK = Rule(
    "the end of the time for which it can be seen after its expiry; it is refused then with or without its item",
    "test_the_item_of_a_link_expires_after_the_link",
)

WRITERS: dict[str, Rule] = {
    "adapters/dynamodb/links.py:_item_of": LINK,
    "adapters/dynamodb/api_keys.py:DynamoApiKeyStore.revoke": API_KEY,
    "adapters/dynamodb/api_keys.py:_item_of": API_KEY,
    "adapters/content_store.py:SplitContentStore._expire_item": CONTENT,
    "adapters/content_store.py:SplitContentStore._retain_item": CONTENT,
    "adapters/content_store.py:SplitContentStore.expire_items": CONTENT,
    "adapters/content_store.py:_ttl": CONTENT,
    "adapters/dynamodb/task_items.py:": RECORD,
    "adapters/dynamodb/bulk.py:DynamoBulkStore.set_latest": BULK_LATEST,
    "adapters/dynamodb/bulk.py:_item_of": BULK,
    "adapters/dynamodb/circuit_breakers.py:_item_of": CIRCUIT,
    "adapters/dynamodb/groups.py:DynamoGroupStore.note": GROUP_MEMBER,
    "adapters/dynamodb/groups.py:_item_of": GROUP,
    "adapters/dynamodb/keys.py:_item_of": KEY,
    "adapters/dynamodb/locks.py:DynamoLockStore.join": WAITER,
    "adapters/dynamodb/locks.py:DynamoLockStore.renew": LOCK,
    "adapters/dynamodb/locks.py:_item_of": LOCK,
    "adapters/dynamodb/order_lines.py:DynamoOrderLineStore.let_expire": ORDER_LINE,
    "adapters/dynamodb/order_lines.py:_kept_from": ORDER_LINE,
    "adapters/dynamodb/task_store.py:bulk_timer_item_of": TIMER,
    "adapters/dynamodb/task_store.py:late_timer_item_of": TIMER,
    "adapters/dynamodb/task_store.py:schedule_timer_item_of": TIMER,
    "adapters/dynamodb/task_store.py:timer_item_of": TIMER,
    "adapters/dynamodb/quotas.py:DynamoQuotaUse.add": QUOTA_USE,
    "adapters/dynamodb/quotas.py:DynamoQuotaUse.hold": QUOTA_USE,
    "adapters/dynamodb/quotas.py:DynamoQuotaUse.take": QUOTA_USE,
    "adapters/dynamodb/rates.py:DynamoRateStore.apply": RATE,
    "adapters/dynamodb/schedules.py:DynamoScheduleStore._end_activity": MARKER,
    "adapters/dynamodb/summary.py:DynamoSummaryStore._remembering": SUMMARY_STEPS,
    "adapters/dynamodb/summary.py:DynamoSummaryStore.expire_counts": SUMMARY_COUNTS,
    "adapters/dynamodb/summary.py:DynamoSummaryRecounts.add_older": SUMMARY_RECOUNT,
    "adapters/dynamodb/task_lists.py:DynamoTaskLists._block_item": TASK_LIST,
    "adapters/dynamodb/task_lists.py:DynamoTaskLists._entry_item": TASK_LIST,
    "adapters/dynamodb/topology_run_state.py:DynamoTopologyStore._addition": TOPOLOGY,
    "adapters/dynamodb/topology_run_state.py:DynamoTopologyStore.add_report": TOPOLOGY,
    "adapters/dynamodb/topology_run_state.py:DynamoTopologyStore.put_token": TOPOLOGY,
    "adapters/dynamodb/topology_run_state.py:DynamoTopologyStore.save": TOPOLOGY,
    "adapters/dynamodb/attempt_contents.py:DynamoTracebackStore.keep": TRACEBACK,
    "adapters/dynamodb/dependencies.py:DynamoDependentStore.add": DEPENDENT,
    "adapters/dynamodb/signals.py:DynamoSignalStore._put": SIGNAL,
    "adapters/dynamodb/attempt_contents.py:DynamoStepStore.extend": STEP,
    "adapters/dynamodb/attempt_contents.py:_item_of": STEP,
    "adapters/dynamodb/keys.py:DynamoUniqueKeyStore.let_expire": UNIQUE_KEY,
    "adapters/dynamodb/versioned_items.py:deletion_marker": MARKER,
    "adapters/dynamodb/live_updates.py:_expiring": WATCH_CONNECTION,
}
"""The functions in the adapters that write the attribute; an empty name stands for the module itself."""

DECIDERS: dict[str, Rule] = {
    "domain/bulk.py:BulkOperation.expires_at": BULK,
    "domain/locks.py:Lock.expires_at": LOCK,
    "domain/locks.py:Lock.renewal_expires_at": LOCK,
    "domain/tasks/task_lists.py:Block.expires_at": TASK_LIST,
    "domain/tasks/task_lists.py:_postings": TASK_LIST,
    "domain/tasks/task_lists.py:_endings": TASK_LIST,
    "domain/topologies/run_state.py:status_of": NODE,
    "domain/restore.py:take_over_occurrence": RECORD,
    "domain/restore.py:_ended_as": RECORD,
    "domain/live_updates.py:Connection.opened": WATCH_CONNECTION,
    "domain/live_updates.py:Ticket.issued": WATCH_TICKET,
    "services/groups.py:opened": GROUP,
    "services/groups.py:GroupMembers.settle": GROUP,
    "services/group_admin.py:GroupManager._closed": GROUP,
    "services/api_keys.py:ApiKeyAdmin.create": API_KEY,
    "services/links.py:TaskLinks.create": LINK,
    "services/signals.py:EventWaits._wait": EVENT_WAITER,
    "services/signals.py:Signals.wake": SIGNAL,
    "services/worker/target_caller.py:CircuitBreakers._save": CIRCUIT,
    "services/bulk/manage.py:BulkOperations._note_latest": BULK_LATEST,
    "services/bulk/filter_actions.py:BulkRequests._remembered": KEY,
    "services/purges.py:Purges.start": CONTENT,
    "services/bulk/filter_actions.py:BulkRequests.take": CONTENT,
    "services/tasks/approvals.py:Approvals._written": RECORD,
    "services/tasks/update.py:TaskUpdater._apply": CONTENT,
    "services/tasks/update.py:TaskUpdater._cancel": RECORD,
    "services/tasks/update.py:TaskUpdater.cancel": RECORD,
    "services/outcomes/completion_steps.py:InlineCompletion._finish": CONTENT,
    "services/tasks/create.py:TaskCreator._remember": KEY,
    "services/schedules/schedule_writer.py:RepeatedRequests.remember": KEY,
    "domain/tasks/creation.py:Identity.expiry": CONTENT,
    "services/outcomes/outcome.py:OutcomeWriter._succeed": CONTENT,
    "services/content_retention.py:write_checkpoint": CONTENT,
    "domain/tasks/steps.py:step_expiry": STEP,
    "services/attempt_steps.py:AttemptSteps.keep": STEP,
    "services/outcomes/outcome.py:skip": RECORD,
    "services/dependencies.py:DependencyChecker._decide": RECORD,
    "services/outcomes/outcome.py:OutcomeWriter.write_outcome": RECORD,
    "services/quotas/at_once.py:RunningTopologies.refusal": QUOTA_USE,
    "services/quotas/at_once.py:LeaseQuota.note": QUOTA_USE,
    "services/quotas/rates.py:RateMeter._add": QUOTA_USE,
    "services/locking.py:LockAdmin.release": LOCK,
    "services/schedules/calendars.py:CalendarManager.delete": MARKER,
    "services/topologies/definitions.py:TopologyDefinitions.delete": MARKER,
    "services/content_retention.py:let_expire": CONTENT,
    "services/outcomes/completion_steps.py:TracebackRecorder.record": TRACEBACK,
    "services/locking.py:LockManager._handed_on": LOCK,
    "services/locking.py:LockManager._in_line": WAITER,
    "services/locking.py:LockManager._reserved": LOCK,
    "services/locking.py:LockManager.renew": LOCK,
    "services/locking.py:LockManager.take": LOCK,
    "services/rate_limiter.py:RateLimiter._apply": RATE,
    "services/rates.py:RateAdmin._write": RATE,
    "services/schedules/occurrence_tasks.py:OccurrenceTasks.expire_payloads": CONTENT,
    "services/schedules/occurrence_tasks.py:OccurrenceTasks.task_for": CONTENT,
    "services/schedules/occurrence_tasks.py:OccurrenceTasks._produced": CONTENT,
    "services/schedules/schedule_writer.py:ScheduleWriter.expire_payload": CONTENT,
    "services/schedules/schedule_writer.py:ScheduleWriter.store_payload": CONTENT,
    "services/schedules/manage.py:ScheduleManager.delete": MARKER,
    "services/tasks/control.py:TaskReopener._moved": RECORD,
    "services/tasks/control.py:TaskReopener.reopen": CONTENT,
    "services/unique_keys.py:let_key_expire": UNIQUE_KEY,
    "services/outcomes/completion_steps.py:CallbackTasks.create": CONTENT,
    "services/topologies/node_transitions.py:NodeActions._release": CONTENT,
    "services/topologies/node_transitions.py:NodeActions.count": TOPOLOGY,
    "services/lost_plans.py:LostPlans.reopen": TOPOLOGY,
    "services/topologies/node_transitions.py:NodeActions.undo": RECORD,
    "services/topologies/deletion.py:Retention._set_one": NODE,
    "services/tasks/erase.py:TaskEraser._finish": RECORD,
    "services/topologies/deletion.py:NodeEraser._erase_one": NODE,
}
"""The functions in services and the domain that name the instant at which an item in the table expires."""


def writers() -> set[str]:
    """Return the functions in the adapters that write the attribute."""
    return {where for where, node in _functions("adapters") if any(_writes(each) for each in ast.walk(node))}


def deciders() -> set[str]:
    """Return the functions in services and the domain that name the instant at which something expires."""
    places = [*_functions("services"), *_functions("domain")]
    return {where for where, node in places if any(_decides(each) for each in ast.walk(node))}


def _functions(folder: str) -> Iterator[tuple[str, ast.AST]]:
    for path in sorted((CORE / folder).rglob("*.py")):
        if "memory" in path.parts:
            continue
        module = ast.parse(path.read_text("utf-8"))
        name = path.relative_to(CORE).as_posix()
        rest = []
        for node in module.body:
            if isinstance(node, ast.FunctionDef):
                yield f"{name}:{node.name}", node
            elif isinstance(node, ast.ClassDef):
                for each in node.body:
                    if isinstance(each, ast.FunctionDef):
                        yield f"{name}:{node.name}.{each.name}", each
            else:
                rest.append(node)
        yield f"{name}:", ast.Module(rest, [])


def _writes(node: ast.AST) -> bool:
    """Return whether a node of the syntax tree creates a value of the attribute."""
    return isinstance(node, ast.Attribute) and node.attr == "expiry"


def _decides(node: ast.AST) -> bool:
    """Return whether a node of the syntax tree names an instant at which something expires."""
    match node:
        case ast.Dict(keys=keys):
            return any(isinstance(key, ast.Constant) and key.value == "expires_at" for key in keys)
        case ast.Subscript(slice=ast.Constant(value="expires_at"), ctx=ast.Store()):
            return True
        case ast.Name(id="expires" | "expires_at", ctx=ast.Store()):
            return True
        case ast.Call(func=ast.Attribute(attr="expires_at" | "renewal_expires_at")):
            return True
        case ast.Call():
            return any(each.arg == "expires_at" for each in node.keywords)
        case ast.FunctionDef(name="expires_at" | "renewal_expires_at"):
            return True
        case ast.Name(id="after_record" | "unless_referenced"):
            return True
    return False


def tests() -> set[str]:
    """Return the names of all tests."""
    names = set()
    for path in Path(__file__).parent.rglob("test_*.py"):
        names |= set(re.findall(r"^def (test_\w+)", path.read_text("utf-8"), re.MULTILINE))
    return names
