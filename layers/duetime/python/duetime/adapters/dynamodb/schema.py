"""The tasks table, written down once: keys, indexes and the short names of a record's attributes.

The CDK builds the table from this module and the stores read and write through it, so it imports nothing.
A write unit is one kilobyte of an item, attribute names included (Source: DynamoDB Developer Guide,
"Read and write operations"): that is why the names are short.
"""

from __future__ import annotations

from dataclasses import dataclass

SCHEMA_VERSION = 1
"""Version that every record carries in `VERSION_OF_SCHEMA`; readers accept this one and the previous."""

PARTITION_KEY = "p"
"""`2026-11-21T02:33#0007` (minute and shard) of a record, or one of the `*_PREFIX` partitions."""
SORT_KEY = "s"
"""The task id of a record; `id#w#` and all that a timer says, of a timer."""
TTL = "x"
"""Seconds since the epoch when DynamoDB may remove the item. Set by terminal writes only."""

VERSION_OF_SCHEMA = "v"
"""Version of the schema that an item was written with."""

DELETED = "del"
"""Only on a deletion marker: what was under this key was deleted, and readers take it for absent. The marker goes on
counting the versions of its name until TTL removes it, so that no write that is older than the deletion can apply."""

OWNER_KEY = "g"
"""`owner#n`: partition key of the owner list, written once at creation."""
FAILED_KEY = "f"
"""`owner#n` while the task is `failed`: partition key of the sparse list of failed tasks."""


@dataclass(frozen=True, slots=True)
class Index:
    """A keys-only global secondary index: partition by `partition_key`, sorted by `SORT_KEY`."""

    name: str
    partition_key: str


OWNER_INDEX = Index("by-owner", OWNER_KEY)
FAILED_INDEX = Index("failed-by-owner", FAILED_KEY)
INDEXES = (OWNER_INDEX, FAILED_INDEX)

STATE = "z"
"""State of a task: of all items, only records of tasks have it."""

TIMER_MARK = "#w#"
"""Between the task id and the rest in the sort key of a timer."""
TIMER_OWNER = "O"
"""Owner of a timer's task. Not `OWNER_KEY`, which would put every timer into the owner list."""

SCHEDULE_MARK = "#s#"
"""Between the schedule's own id and the rest in the sort key of a schedule's timer."""
TIMER_SCHEDULE = "M"
"""Name of the schedule that a timer is for."""

LATE_MARK = "#n#"
"""Between the task id and the time in the sort key of the timer that checks whether a task is late."""

BULK_MARK = "#b#"
"""Behind the id of a bulk operation in the sort key of its timer."""

EXPIRING_TAG = ("expire", "true")
"""Key and value of the tag of an object in the content bucket whose task has ended: a lifecycle rule removes it."""
UNREFERENCED_TAG = ("expire", "unreferenced")
"""The same for an object that no record is known to refer to: another lifecycle rule removes it, much later."""
KEPT_TAG = ("expire", "never")
"""The same for an object that an open record refers to: no rule removes it, as none removes an untagged one."""
CONTENT_PREFIX = "x#"
"""Partition of what the trigger need not read: spilled payloads and results, old attempt records."""
KEY_PREFIX = "k#"
"""Partition of one idempotency key."""
UNIQUE_KEY_PREFIX = "u#"
"""Partition of one unique key."""
LOCK_PREFIX = "l#"
"""Partition of one lock: its holders in one item, its line in one item each."""
RATE_PREFIX = "e#"
"""Partition of one part of a rate."""
LOCK_LIST_MARK = "#L"
"""Between the owner and the number in the owner list's partitions of locks; those of tasks have digits only."""
SWITCH_PREFIX = "s#"
"""Partition of the one item that holds all switches."""
CIRCUIT_PREFIX = "h#"
"""Partition of the circuit of one owner's calls to an HTTP host."""
CIRCUIT_LIST = "#C"
"""Partition of the owner list in which circuits are that are not closed; those of owners do not begin with `#`."""
SCHEDULE_PREFIX = "r#"
"""Partition of one schedule: what it is and how far it has come in one item, which occurrence goes on in another."""
SCHEDULE_HEAD_MARK = "#"
"""Before the name in the sort key of a schedule; it sorts before that of its activity."""
SCHEDULE_LIST_MARK = "#S"
"""As `LOCK_LIST_MARK`, for schedules."""
CALENDAR_PREFIX = "d#"
"""Partition of one calendar."""
CALENDAR_LIST_MARK = "#D"
"""As `LOCK_LIST_MARK`, for calendars."""
DEFINITION_PREFIX = "td#"
"""Partition of one topology definition: its latest version in one item, earlier ones in items of their own."""
DEFINITION_LIST_MARK = "#T"
"""As `LOCK_LIST_MARK`, for topology definitions."""
EARLIER_VERSION_MARK = "#v#"
"""In front of the number in the sort key of an earlier version of a topology definition."""
TOPOLOGY_PREFIX = "t#"
"""Partition of one topology's head, or of one node's counts and token; by the id of its task."""
BULK_PREFIX = "b#"
"""Partition of one bulk operation."""
BULK_LIST_MARK = "#B"
"""As `LOCK_LIST_MARK`, for bulk operations, which are few: they all lie in one partition of the list."""
LONG_POLL_PREFIX = "w#"
"""Partition of one of the places in which requests of the API wait; they are few, and used again and again."""
SUMMARY_PREFIX = "n#"
"""Partition of one part of an owner's counts of tasks."""
WATCH_TICKET_PREFIX = "wt#"
"""Partition of one ticket for a WebSocket connection, by its digest."""
WATCH_CONNECTION_PREFIX = "wc#"
"""Partition of one WebSocket connection."""
WATCH_SUBSCRIPTION_PREFIX = "ws#"
"""Partition of the subscriptions of one owner, sorted by connection."""
CURSOR_PREFIX = "c#"
"""Partition of one shard group's cursors."""

STREAM_FILTERS = (
    {"dynamodb": {"NewImage": {STATE: {"S": [{"exists": True}]}}}},
    {"eventName": ["REMOVE"], "dynamodb": {"OldImage": {STATE: {"S": [{"exists": True}]}}}},
    {
        "dynamodb": {
            "Keys": {
                PARTITION_KEY: {"S": [{"prefix": SCHEDULE_PREFIX}]},
                SORT_KEY: {"S": [{"prefix": SCHEDULE_HEAD_MARK}]},
            }
        }
    },
)
"""Which records of the table's stream are delivered: those of tasks and of schedules.

Timers, idempotency keys, locks, counters and the like are not, and no invocation is made for them (Source: AWS Lambda
Developer Guide, "Using event filtering with a DynamoDB event source").
"""

TTL_PRINCIPAL = "dynamodb.amazonaws.com"
"""Who removed a record that TTL removed (Source: DynamoDB Developer Guide, "DynamoDB Streams and Time to Live")."""
REMOVED_TASKS_FILTER = {
    "eventName": ["REMOVE"],
    "userIdentity": {"type": ["Service"], "principalId": [TTL_PRINCIPAL]},
    "dynamodb": {"OldImage": {STATE: {"S": [{"exists": True}]}}},
}
"""Which records of the table's stream are archived: tasks that TTL removed, not those that somebody deleted."""
