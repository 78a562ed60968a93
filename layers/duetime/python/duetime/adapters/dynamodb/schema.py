"""Defines the schema of the tasks table, with its keys, indexes, and the short names of attributes.

The CDK creates the table from this module, and the stores also use it, so it imports no other module of `duetime`. A
write unit is one kilobyte of an item, including attribute names (Source: DynamoDB Developer Guide, "Read and write
operations"), so the names are short.
"""

from __future__ import annotations

from duetime_common.frozen_classes import frozen

SCHEMA_VERSION = 1
"""Version in the attribute `VERSION_OF_SCHEMA` of every record. Readers accept this version and the previous
version."""

PARTITION_KEY = "p"
"""Partition key: `2026-11-21T02:33#0007` (minute and shard) for a task's record, or a key that begins with a
`*_PREFIX`."""
SORT_KEY = "s"
"""Sort key: the task id for a task's record; `id#w#` and all of the timer's data for a timer."""
TTL = "x"
"""Seconds since the epoch after which DynamoDB may remove the item. Of a task's writes, only terminal writes set this
attribute."""

VERSION_OF_SCHEMA = "v"
"""The schema version with which an item was written."""

DELETED = "del"
"""Attribute that only deletion markers have. The object with this key was deleted, and readers treat the object as
absent. Until TTL removes the marker, a new object with the same name continues from the marker's version, so that no
write from before the deletion can be applied.
"""

OWNER_KEY = "g"
"""Partition key of the owner list, `owner#n`, which is written once at creation."""
FAILED_KEY = "f"
"""Partition key of the sparse list of failed tasks, `owner#n`, which exists only while the task is `failed`."""
PARENT_KEY = "pt"
"""Partition key of the sparse list of child tasks, which is the parent task's id and is written once at creation."""


@frozen
class Index:
    """A keys-only global secondary index, which is partitioned by `partition_key` and sorted by `SORT_KEY`."""

    name: str
    partition_key: str


OWNER_INDEX = Index("by-owner", OWNER_KEY)
FAILED_INDEX = Index("failed-by-owner", FAILED_KEY)
CHILD_INDEX = Index("by-parent", PARENT_KEY)
INDEXES = (OWNER_INDEX, FAILED_INDEX, CHILD_INDEX)

STATE = "z"
"""The state of a task. Only task records have this attribute."""

TIMER_MARK = "#w#"
"""Separates the task id from the timer's data in the sort key of a timer."""
TIMER_OWNER = "O"
"""The owner of a timer's task. Timers do not use `OWNER_KEY`, because it would add every timer to the owner list."""

SCHEDULE_MARK = "#s#"
"""Separates the schedule's id from the timer's data in the sort key of a schedule's timer."""
TIMER_SCHEDULE = "M"
"""The name of a timer's schedule."""

LATE_MARK = "#n#"
"""Separates the task id from the time in the sort key of the timer that checks whether a task is late."""

BULK_MARK = "#b#"
"""Follows the bulk operation's id in the sort key of its timer."""

EXPIRING_TAG = ("expire", "true")
"""Tag of an object in the content bucket whose task has ended. A lifecycle rule removes the object."""
UNREFERENCED_TAG = ("expire", "unreferenced")
"""Tag of an object to which no known record refers. Another lifecycle rule removes the object much later."""
KEPT_TAG = ("expire", "never")
"""Tag of an object to which an open record refers. No rule removes objects with this tag or without a tag."""
CONTENT_PREFIX = "x#"
"""Partition of items that the trigger does not need to read: separate payloads and results, and old attempt records."""
KEY_PREFIX = "k#"
"""Partition of one idempotency key."""
UNIQUE_KEY_PREFIX = "u#"
"""Partition of one unique key."""
LOCK_PREFIX = "l#"
"""Partition of one lock, with all holders in one item, and each waiting task in a separate item."""
ORDER_LINE_PREFIX = "o#"
"""Partition of one ordered key, with the counter and the turn in one item, and each place in a separate item."""
EVENT_PREFIX = "ev#"
"""Partition of one event, with an item for each signal and for each task that waits for the event."""
RATE_PREFIX = "e#"
"""Partition of one part of a rate."""
LOCK_LIST_MARK = "#L"
"""Separates the owner from the number in the owner list's partition keys for locks. In partition keys for tasks, only
`#` separates them."""
RATE_LIST_MARK = "#R"
"""Like `LOCK_LIST_MARK`, for rates."""
ORDER_LIST_MARK = "#O"
"""Like `LOCK_LIST_MARK`, for ordered keys."""
SWITCH_PREFIX = "s#"
"""Partition of the two items with all switches: one item for operators' switches, and one item for owners' switches."""
QUOTA_PREFIX = "q#"
"""Partition of the one item with the quotas that operators have set. If an owner follows the prefix, the partition
contains this owner's usage."""
INTAKE_RULES_PREFIX = "ir#"
"""Partition of the one item with all intake rules."""
TYPE_DEFAULTS_PREFIX = "y#"
"""Partition of the one item with the defaults of an owner's task types."""
CIRCUIT_PREFIX = "h#"
"""Partition of the circuit breaker for one owner's calls to an HTTP host."""
CIRCUIT_LIST = "#C"
"""Partition of the owner list for circuit breakers that are not closed. Owners' partitions never begin with `#`."""
API_KEY_PREFIX = "ak#"
"""Partition of one API key."""
API_KEY_LIST = "#A"
"""Like `CIRCUIT_LIST`, for API keys."""
SCHEDULE_PREFIX = "r#"
"""Partition of one schedule, with its definition and progress in one item, and its active runs in another item."""
SCHEDULE_HEAD_MARK = "#"
"""Precedes the name in the sort key of a schedule, which sorts before the sort key of the schedule's activity."""
SCHEDULE_LIST_MARK = "#S"
"""Like `LOCK_LIST_MARK`, for schedules."""
CALENDAR_PREFIX = "d#"
"""Partition of one calendar."""
CALENDAR_LIST_MARK = "#D"
"""Like `LOCK_LIST_MARK`, for calendars."""
DEFINITION_PREFIX = "td#"
"""Partition of one topology definition, with a separate item for each version."""
DEFINITION_LIST_MARK = "#T"
"""Like `LOCK_LIST_MARK`, for topology definitions."""
EARLIER_VERSION_MARK = "#v#"
"""Precedes the number in the sort key of an earlier version of a topology definition."""
GROUP_PREFIX = "gr#"
"""Partition of one group without its members."""
GROUP_LIST_MARK = "#G"
"""Like `LOCK_LIST_MARK`, for groups."""
GROUP_MEMBERS_PREFIX = "gm#"
"""Partition of one part of a group's members, with an item for each member, whose sort key is the member's task id."""
TOPOLOGY_PREFIX = "t#"
"""Partition of one topology's run state, or of one node's counts and token, by the task's id."""
BULK_PREFIX = "b#"
"""Partition of one bulk operation."""
BULK_LIST_MARK = "#B"
"""Like `LOCK_LIST_MARK`, for bulk operations. Because there are few bulk operations, they share one partition of the
list."""
LONG_POLL_PREFIX = "w#"
"""Partition of one long-poll slot. There are few slots, which are reused."""
SUMMARY_PREFIX = "n#"
"""Partition of one part of an owner's task counts."""
WATCH_TICKET_PREFIX = "wt#"
"""Partition of one ticket for a WebSocket connection, by the ticket's digest."""
WATCH_CONNECTION_PREFIX = "wc#"
"""Partition of one WebSocket connection."""
WATCH_SUBSCRIPTION_PREFIX = "ws#"
"""Partition of one owner's subscriptions, sorted by connection."""
LIST_PREFIX = "i#"
"""Partition of one list of an owner's tasks, or of the item with the progress of the owner's lists."""
REGION_KEY = "region"
"""Partition of the active Region's record and of the replication probe."""
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
"""Filters for the stream records to deliver, which are records of tasks and schedules.

Records of timers, idempotency keys, locks, counters and other items do not cause invocations (Source: AWS Lambda
Developer Guide, "Using event filtering with a DynamoDB event source").
"""

TTL_PRINCIPAL = "dynamodb.amazonaws.com"
"""The principal that removes items by TTL (Source: DynamoDB Developer Guide, "DynamoDB Streams and Time to Live")."""
REMOVED_TASKS_FILTER = {
    "eventName": ["REMOVE"],
    "userIdentity": {"type": ["Service"], "principalId": [TTL_PRINCIPAL]},
    "dynamodb": {"OldImage": {STATE: {"S": [{"exists": True}]}}},
}
"""Filter for the stream records to archive, which are tasks that TTL has removed, but not deleted tasks."""
