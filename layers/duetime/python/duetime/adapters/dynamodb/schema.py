"""The schema of the tasks table: keys, indexes and the short names of a record's attributes.

The CDK creates the table from this module, and the stores read and write with it, so it imports nothing. A write unit
is one kilobyte of an item, including attribute names (Source: DynamoDB Developer Guide, "Read and write operations"),
so the names are short.
"""

from __future__ import annotations

from duetime_common.frozen_classes import frozen

SCHEMA_VERSION = 1
"""Version in the attribute `VERSION_OF_SCHEMA` of every record; readers accept this version and the previous
version."""

PARTITION_KEY = "p"
"""`2026-11-21T02:33#0007` (minute and shard) for a record, or one of the `*_PREFIX` partitions."""
SORT_KEY = "s"
"""The task id for a record; `id#w#` and all its data for a timer."""
TTL = "x"
"""Seconds since the epoch after which DynamoDB may remove the item; only terminal writes set this attribute."""

VERSION_OF_SCHEMA = "v"
"""Version of the schema with which an item was written."""

DELETED = "del"
"""Only on a deletion marker: the object with this key was deleted, and readers treat it as absent. The marker continues
the versions of its name until TTL removes it, so that no write from before the deletion can be applied.
"""

OWNER_KEY = "g"
"""`owner#n`: partition key of the owner list, written once at creation."""
FAILED_KEY = "f"
"""`owner#n` while the task is `failed`: partition key of the sparse list of failed tasks."""
PARENT_KEY = "pt"
"""Id of the task that started the task: partition key of the sparse list of its children, written once at creation."""


@frozen
class Index:
    """A keys-only global secondary index: partition by `partition_key`, sorted by `SORT_KEY`."""

    name: str
    partition_key: str


OWNER_INDEX = Index("by-owner", OWNER_KEY)
FAILED_INDEX = Index("failed-by-owner", FAILED_KEY)
CHILD_INDEX = Index("by-parent", PARENT_KEY)
INDEXES = (OWNER_INDEX, FAILED_INDEX, CHILD_INDEX)

STATE = "z"
"""State of a task; only records of tasks have it."""

TIMER_MARK = "#w#"
"""Stands between the task id and the rest in the sort key of a timer."""
TIMER_OWNER = "O"
"""Owner of a timer's task. The timer does not use `OWNER_KEY`, which would add every timer to the owner list."""

SCHEDULE_MARK = "#s#"
"""Stands between the schedule's own id and the rest in the sort key of a schedule's timer."""
TIMER_SCHEDULE = "M"
"""Name of the schedule that a timer is for."""

LATE_MARK = "#n#"
"""Stands between the task id and the time in the sort key of the timer that checks whether a task is late."""

BULK_MARK = "#b#"
"""Follows the id of a bulk operation in the sort key of its timer."""

EXPIRING_TAG = ("expire", "true")
"""Tag of an object in the content bucket whose task has ended; a lifecycle rule removes the object."""
UNREFERENCED_TAG = ("expire", "unreferenced")
"""Tag of an object that no record is known to refer to; another lifecycle rule removes the object much later."""
KEPT_TAG = ("expire", "never")
"""Tag of an object that an open record refers to; no rule removes such an object, or an object without a tag."""
CONTENT_PREFIX = "x#"
"""Partition of items that the trigger need not read: separate payloads and results, old attempt records."""
KEY_PREFIX = "k#"
"""Partition of one idempotency key."""
UNIQUE_KEY_PREFIX = "u#"
"""Partition of one unique key."""
LOCK_PREFIX = "l#"
"""Partition of one lock: all holders in one item, and each task in line in a separate item."""
ORDER_LINE_PREFIX = "o#"
"""Partition of one ordered key: the counter and turn in one item, and each place in a separate item."""
EVENT_PREFIX = "ev#"
"""Partition of one event, with an item for each signal and for each task that waits for the event."""
RATE_PREFIX = "e#"
"""Partition of one part of a rate."""
LOCK_LIST_MARK = "#L"
"""Stands between owner and number in the owner list's partitions for locks; partitions for tasks have only digits
there."""
RATE_LIST_MARK = "#R"
"""Like `LOCK_LIST_MARK`, for rates."""
ORDER_LIST_MARK = "#O"
"""Like `LOCK_LIST_MARK`, for ordered keys."""
SWITCH_PREFIX = "s#"
"""Partition of the two items that hold all switches: one for operators' switches, and one for owners' switches."""
QUOTA_PREFIX = "q#"
"""Partition of the one item with the quotas that operators have set. Followed by an owner, it is the partition of that
owner's usage."""
INTAKE_RULES_PREFIX = "ir#"
"""Partition of the one item with all intake rules."""
TYPE_DEFAULTS_PREFIX = "y#"
"""Partition of the one item that holds the defaults of an owner's types."""
CIRCUIT_PREFIX = "h#"
"""Partition of the circuit for one owner's calls to an HTTP host."""
CIRCUIT_LIST = "#C"
"""Partition of the owner list with circuits that are not closed; no owner's partition begins with `#`."""
API_KEY_PREFIX = "ak#"
"""Partition of one API key."""
API_KEY_LIST = "#A"
"""Like `CIRCUIT_LIST`, for API keys."""
SCHEDULE_PREFIX = "r#"
"""Partition of one schedule, with its definition and progress in one item, and its active runs in another item."""
SCHEDULE_HEAD_MARK = "#"
"""Precedes the name in the sort key of a schedule; sorts before the sort key of its activity."""
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
"""Partition of one group, without its members."""
GROUP_LIST_MARK = "#G"
"""Like `LOCK_LIST_MARK`, for groups."""
GROUP_MEMBERS_PREFIX = "gm#"
"""Partition of a part of a group's members, with an item for each member, by the id of the member's task."""
TOPOLOGY_PREFIX = "t#"
"""Partition of one topology's run state, or of one node's counts and token; by the id of the task."""
BULK_PREFIX = "b#"
"""Partition of one bulk operation."""
BULK_LIST_MARK = "#B"
"""Like `LOCK_LIST_MARK`, for bulk operations; because they are few, they share one partition of the list."""
LONG_POLL_PREFIX = "w#"
"""Partition of one long-poll slot; there are few slots, and they are reused."""
SUMMARY_PREFIX = "n#"
"""Partition of one part of an owner's counts of tasks."""
WATCH_TICKET_PREFIX = "wt#"
"""Partition of one ticket for a WebSocket connection, by its digest."""
WATCH_CONNECTION_PREFIX = "wc#"
"""Partition of one WebSocket connection."""
WATCH_SUBSCRIPTION_PREFIX = "ws#"
"""Partition of the subscriptions of one owner, sorted by connection."""
LIST_PREFIX = "i#"
"""Partition of one list of an owner's tasks, or of the progress of all these lists."""
REGION_KEY = "region"
"""Partition of the record of the active Region, and of the replication probe."""
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
"""Records of the table's stream to deliver: tasks and schedules.

Timers, idempotency keys, locks, counters and other items are filtered out and cause no invocation (Source: AWS Lambda
Developer Guide, "Using event filtering with a DynamoDB event source").
"""

TTL_PRINCIPAL = "dynamodb.amazonaws.com"
"""Principal of removals by TTL (Source: DynamoDB Developer Guide, "DynamoDB Streams and Time to Live")."""
REMOVED_TASKS_FILTER = {
    "eventName": ["REMOVE"],
    "userIdentity": {"type": ["Service"], "principalId": [TTL_PRINCIPAL]},
    "dynamodb": {"OldImage": {STATE: {"S": [{"exists": True}]}}},
}
"""Records of the table's stream to archive: tasks that TTL has removed, but no deleted tasks."""
