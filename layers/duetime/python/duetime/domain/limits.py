"""All limits of duetime. The API enforces the limits; the docs and the OpenAPI document list them."""

from __future__ import annotations

from duetime.domain.times import DAY, HOUR, MINUTE, SECOND
from duetime_common.limits import (
    DEFAULT_BATCH_SIZE as DEFAULT_BATCH_SIZE,
)
from duetime_common.limits import (
    DEFAULT_BATCH_WAIT_SECONDS as DEFAULT_BATCH_WAIT_SECONDS,
)
from duetime_common.limits import (
    MAX_BATCH as MAX_BATCH,
)
from duetime_common.limits import (
    MAX_BODY_BYTES as MAX_BODY_BYTES,
)
from duetime_common.limits import (
    MAX_CHECKPOINT_BYTES as MAX_CHECKPOINT_BYTES,
)
from duetime_common.limits import (
    MAX_CONDITION_LENGTH as MAX_CONDITION_LENGTH,
)
from duetime_common.limits import (
    MAX_EDGES as MAX_EDGES,
)
from duetime_common.limits import (
    MAX_ENCRYPTED_TEXT_LENGTH as MAX_ENCRYPTED_TEXT_LENGTH,
)
from duetime_common.limits import (
    MAX_ERROR_MESSAGE_LENGTH as MAX_ERROR_MESSAGE_LENGTH,
)
from duetime_common.limits import (
    MAX_ERROR_TYPE_LENGTH as MAX_ERROR_TYPE_LENGTH,
)
from duetime_common.limits import (
    MAX_HANDLER_BATCH as MAX_HANDLER_BATCH,
)
from duetime_common.limits import (
    MAX_HANDLER_BATCH_WAIT_SECONDS as MAX_HANDLER_BATCH_WAIT_SECONDS,
)
from duetime_common.limits import (
    MAX_JSON_DEPTH as MAX_JSON_DEPTH,
)
from duetime_common.limits import (
    MAX_NODE_KEY_LENGTH as MAX_NODE_KEY_LENGTH,
)
from duetime_common.limits import (
    MAX_NODES as MAX_NODES,
)
from duetime_common.limits import (
    MAX_PAGE as MAX_PAGE,
)
from duetime_common.limits import (
    MAX_PAYLOAD_BYTES as MAX_PAYLOAD_BYTES,
)
from duetime_common.limits import (
    MAX_PROGRESS_MESSAGE_LENGTH as MAX_PROGRESS_MESSAGE_LENGTH,
)
from duetime_common.limits import (
    MAX_RESULT_BYTES as MAX_RESULT_BYTES,
)
from duetime_common.limits import (
    MAX_RETRY_WAIT_SECONDS as MAX_RETRY_WAIT_SECONDS,
)
from duetime_common.limits import (
    MAX_STEP_NAME_LENGTH as MAX_STEP_NAME_LENGTH,
)
from duetime_common.limits import (
    MAX_STEP_RESULT_BYTES as MAX_STEP_RESULT_BYTES,
)
from duetime_common.limits import (
    MAX_STEPS as MAX_STEPS,
)
from duetime_common.limits import (
    MAX_TRACEBACK_LENGTH as MAX_TRACEBACK_LENGTH,
)
from duetime_common.limits import (
    MAX_UPLOAD_BYTES as MAX_UPLOAD_BYTES,
)
from duetime_common.limits import (
    MAX_UPLOAD_ID_LENGTH as MAX_UPLOAD_ID_LENGTH,
)

MAX_DUE_AHEAD = 3_653 * DAY
"""How far in the future a task can be due: ten years."""
MAX_NUMBER_DIGITS = 38
"""Maximum number of digits of a number, which is DynamoDB's precision (Source: DynamoDB Developer Guide, "Number")."""
MAX_EXPANDED_PAGE = 20
"""Maximum number of tasks on one page of a list that shows payloads or results."""
MAX_EXPANDED_BYTES = 2_000_000
"""Maximum number of bytes of payloads and results on one page. The page ends before the task that would exceed this
limit."""
MAX_EXAMINED = 1_000
"""Maximum number of records that one page of a filtered list reads before returning a continuation token."""
BULK_RETENTION = 7 * DAY
"""How long an ended bulk operation can be read."""
PURGE_RETENTION = 400 * DAY
"""How long the receipt of a purge can be read."""
MAX_BULK_PAGE = 50
"""Maximum number of bulk operations in a list. The list contains the latest operations."""
MIN_BULK_PACE = 0.1
"""Slowest pace of a bulk operation, in tasks per second."""
MAX_BULK_PACE = 1_000
"""Fastest pace of a bulk operation, in tasks per second."""
WATCH_TICKET_LIFE = 30 * SECOND
"""How long a ticket for a WebSocket connection can be used; each ticket opens one connection."""
WATCH_CONNECTION_LIFE = 2 * HOUR + 10 * MINUTE
"""How long a connection and its subscriptions are kept, which is longer than the two hours for which API Gateway keeps
a connection open (Source: API Gateway quotas for WebSocket APIs)."""
MAX_SUBSCRIPTIONS = 20
"""Maximum number of subscriptions of one connection."""
MAX_OWNER_SUBSCRIPTIONS = 1_000
"""Maximum number of subscriptions of one owner, over all connections."""
MAX_WATCH_REF_LENGTH = 64
"""Maximum number of characters in the name that a client gives a subscription."""
MAX_WATCH_MESSAGE_BYTES = 16_384
"""Maximum size of a message from a client, in bytes."""
MAX_FRAME_BYTES = 32_768
"""Maximum size of a message to a client, in bytes, because API Gateway bills each 32 KB (Source: API Gateway
pricing)."""
MAX_PUSHED_CHANGES = 100
"""Maximum number of changes that a connection receives per batch of writes. If there are more changes, the client is
asked to read its subjects again."""
MAX_TYPE_LENGTH = 64
MAX_DEPENDENCIES = 50
"""Maximum number of tasks that a task can wait for in its `after`."""
MAX_NAME_LENGTH = 128
MAX_OWNER_LENGTH = 128
MAX_URL_LENGTH = 2_048
MAX_HTTP_FIELDS = 20
"""Maximum number of headers, and of query parameters, of an HTTP target."""
MAX_HTTP_FIELD_NAME_LENGTH = 64
"""Maximum number of characters in the name of a header or query parameter of an HTTP target, or of a form field."""
MAX_HTTP_FIELD_LENGTH = 1_024
"""Maximum number of characters in the value of a header or query parameter of an HTTP target."""
MAX_REQUEST_BYTES = 4_096
"""Maximum size of the headers, the query and the body of an HTTP target, in bytes of UTF-8. A larger body must be a
payload."""
MAX_SUCCESS_STATUSES = 20
"""Maximum number of statuses of an HTTP response that mean success."""
MAX_SECRET_NAME_LENGTH = 64
"""Maximum number of characters in the name of a secret that HTTP calls use."""
MAX_ARN_LENGTH = 256
"""Maximum number of characters in the ARN of an AWS target, which the record keeps."""
MAX_DETAIL_TYPE_LENGTH = 128
"""Maximum number of characters in an event's detail type (Source: EventBridge API Reference, PutEventsRequestEntry)."""
MAX_TAGS = 10
"""Tags of one task."""
MAX_TAG_KEY_LENGTH = 32
MAX_TAG_VALUE_LENGTH = 64
MAX_IDEMPOTENCY_KEY_LENGTH = 255
IDEMPOTENCY_KEY_LIFE = DAY
"""How long an idempotency key is stored by default; always less than the retention of ended tasks."""
MIN_KEY_SECONDS = 60
"""Shortest time for which a request can have its idempotency key stored; the longest is the retention of ended
tasks."""
MAX_UNIQUE_KEY_LENGTH = 128
"""Maximum number of characters in a unique key, which is stored in the record."""
MAX_GROUP_ID_LENGTH = 128
"""Maximum number of characters in a group's id, which is stored in each member's record."""
GROUP_LIFE = 400 * DAY
"""How long a group and its members are kept after the last due time of a member, a member's end, and the group's
completion. Until then, no other group can use its id."""
MAX_COUNTED_OPEN = 1_000
"""Maximum number of open members of a group whose states are read for its counts. If there are more, they are only
counted as open."""
MAX_DEBOUNCE_SECONDS = 2_592_000
"""Longest time by which each new creation can delay a debounced task, and longest total delay."""
MAX_ATTEMPTS = 100
"""Maximum number of attempts in a retry policy."""
MAX_RETRY_MULTIPLIER = 100
"""Largest multiplier of a retry policy; its powers must fit into a float."""
WORKER_FUNCTION_SECONDS = 900
"""How long an invocation of the worker may take, which is the longest time that Lambda allows (Source: AWS Lambda
quotas)."""
MAX_WORKER_BATCH = 100
"""Largest number of tasks in one invocation of the worker; each has a thread."""
MAX_TIMEOUT_SECONDS = 840
"""Longest attempt in a worker function, with all its phases. This limit is the function's time, less the time to wait,
claim and finish."""
MAX_PULLED_TIMEOUT_SECONDS = 1_209_600
"""Longest attempt of a pull worker: fourteen days. The worker is alive as long as its heartbeats renew the lease."""
MAX_DEADLINE_SECONDS = 2_592_000
"""Longest time limit of an asynchronous attempt: thirty days."""
MAX_WAIT_SECONDS = 25
"""Longest time for which a request can wait for a task to end, because API Gateway waits thirty seconds."""
MAX_LOCK_KEY_LENGTH = 64
MAX_LOCK_HOLDERS = 100
"""Largest `max_holders` of a lock; each holder takes about 50 bytes of the lock's item."""
MAX_LOCKS = 5
"""Maximum number of locks of a task; each lock costs two write units."""
MAX_RATE_LIMIT = 10_000
"""Largest `limit` of a rate, and largest `burst`."""
MAX_RATE_SECONDS = 86_400
"""Largest `per_seconds` of a rate."""
MAX_FAIR_KEY_LENGTH = 128
"""Maximum number of characters in a fair key, which is stored in a task's record and timers."""
MAX_FAIR_WEIGHT = 5
"""Largest weight of a fair key. Each unit is a message group, and SQS prefers other groups only to groups that have
more than a tenth of the messages in flight. The groups of a key with weight ten would never have that many."""
MAX_EXPLAINED_LINE = 100
"""Maximum number of tasks in a lock's line that an explanation reads to find a task's place."""
MAX_EXPLAINED_TASKS = 100
"""Maximum number of tasks that an explanation reads because another task waits for them: holders of a lock, parents,
nodes."""
MAX_EXPLAINED_PLACES = 1_000
"""Maximum number of tasks in an ordered key's line that an explanation counts to find a task's place."""
MAX_EXPRESSION_LENGTH = 256
"""Maximum number of characters in a cron expression, a rate or an interval."""
MAX_ZONE_LENGTH = 64
MAX_TIMINGS = 10
"""Maximum number of timings in the `timings` of a schedule."""
MAX_DATES = 1_000
"""Maximum number of date-times in the `dates` of a schedule."""
MAX_PERIOD_DAYS = 3_653
"""Longest time between two occurrences of a rate or an interval, and longest gap of `permanent`: ten years."""
MAX_JITTER_SECONDS = 86_400
"""Largest jitter, and largest spread, of a schedule."""
MAX_CATCH_UP_SECONDS = 2_592_000
"""Longest `catch_up_seconds` of a schedule: thirty days."""
MIN_EXPECT_EVERY_SECONDS = 60
"""Shortest `expect_every_seconds` of a schedule."""
MAX_EXPECT_EVERY_SECONDS = 604_800
"""Longest `expect_every_seconds` of a schedule: seven days."""
MIN_EXPECT_DURATION_FACTOR = 1.1
"""Smallest `expect_duration_factor` of a schedule."""
MAX_EXPECT_DURATION_FACTOR = 1_000
"""Largest `expect_duration_factor` of a schedule."""
MAX_OCCURRENCES = 1_000
"""Maximum number of occurrences in one preview or list."""
MAX_NOTE_LENGTH = 256
"""Maximum number of characters in the reason why a schedule is paused."""
MAX_BACKFILL_PER_MINUTE = 6_000
"""Fastest pace of a backfill, in occurrences per minute."""
MAX_BACKFILLS = 5
"""Maximum number of backfills of one schedule that can run at once. The backfills that ended most recently can also be
read."""
MAX_WAITING_RUNS = 100
"""Maximum number of occurrences of one schedule that can wait for the running occurrence, with `overlap:
buffer_all`."""
MAX_CHANGED_OCCURRENCES = 100
"""Maximum number of occurrences of one schedule that can be skipped or moved individually, not counting occurrences due
more than a day ago."""
MAX_CALENDARS = 8
"""Maximum number of calendars that one schedule can use."""
MAX_CALENDAR_DATES = 5_000
"""Maximum number of dates and spans in one calendar, including dates of recurring events."""
MAX_CALENDAR_WINDOWS = 64
"""Windows of one calendar."""
MAX_CALENDAR_BYTES = 1_048_576
"""Maximum size of an iCalendar file, in bytes."""
MAX_CALENDAR_RULES = 100
"""Maximum number of recurring events in one iCalendar file."""
MAX_TOPOLOGY_LEVELS = 4
"""Maximum number of levels of nested topologies, including the outermost level."""
MAX_MAP_BYTES = 33_554_432
"""Maximum size of a map's nodes, each with its item, in bytes of JSON. Without this limit, a short map could describe
nodes that do not fit into memory."""
MAX_GRAPH_BYTES = 2_097_152
"""Maximum size of a graph, in bytes of JSON. Together with the states of its nodes, the graph must fit into a response
of 6 MB (Source: AWS Lambda quotas)."""
MAX_RERUN_NODES = 20
"""Maximum number of nodes that a topology's retry can name. Descendants of these nodes run again without being
named."""
MAX_EXPECTED_SECONDS = 2_592_000
"""Longest expected duration of a node: thirty days, as long as an asynchronous attempt can take."""
MAX_DEFINITION_BYTES = 300_000
"""Maximum size of a compressed topology definition, which is stored in one item of at most 400 KB (Source: DynamoDB
quotas)."""
MAX_DEFINITION_VERSIONS = 100
"""Maximum number of versions of a topology definition that can be read and run. Only the latest versions are kept."""
MAX_PARAMETERS = 50
"""Maximum number of parameters of a topology definition."""
MAX_PARAMETERS_BYTES = 4_096
"""Maximum size of a run's parameters, in bytes of JSON in UTF-8, because the run's record stores the parameters."""
MAX_PARAMETER_VALUES = 100
"""Maximum number of values in the `enum` of a parameter."""
MAX_DESCRIPTION_LENGTH = 1_000
"""Maximum number of characters in the description of a topology definition, or of a parameter."""
MAX_OUTPUTS = 100
"""Maximum number of nodes whose results can be part of the result of their topology."""
MAX_INPUTS_BYTES = 1_048_576
"""Maximum size of all parents' results that a node receives, in bytes of UTF-8."""
DEFAULT_APPROVAL_SECONDS = 604_800
"""Default time for which a task waits for an approval: a week."""
DEFAULT_EVENT_SECONDS = 604_800
"""Default time for which a task waits for an event: a week."""
MAX_EVENT_KEY_LENGTH = 256
"""Maximum number of characters in the key of an event that tasks wait for."""
SIGNAL_LIFE = 30 * DAY
"""How long a signal is kept, which is as long as a task can wait for a signal."""
MAX_LOOKBACK_SECONDS = 2_592_000
"""Longest time before a task's creation at which its signal may have been sent."""
MAX_EVENT_AHEAD = 5 * MINUTE
"""How far in the future the time of an event that creates tasks can be."""
MAX_EVENT_NAME_LENGTH = 256
"""Maximum number of characters in the id and the source of an event that creates tasks."""
MAX_REASON_LENGTH = 1_000
"""Maximum number of characters in the stored reason why an event was rejected."""
MAX_EVENT_PATTERN_LENGTH = 4_096
"""Maximum number of characters in an intake rule's event pattern, as for an EventBridge rule (Source: EventBridge
quotas)."""
MAX_INTAKE_RULES = 100
"""Maximum number of intake rules of a deployment."""
MAX_INTAKE_RULE_FIELDS = 20
"""Maximum number of request fields that an intake rule sets from the event."""
MAX_INTAKE_RULES_BYTES = 300_000
"""Maximum compressed size of all intake rules, which are stored in one item of at most 400 KB (Source: DynamoDB
quotas)."""
MAX_API_KEY_NAME_LENGTH = 128
"""Maximum number of characters in the name of an API key."""
MAX_LINKS = 50
"""Maximum number of links of a task that are listed, including ended links."""
MAX_LINK_MESSAGE_LENGTH = 500
"""Maximum number of characters in the message that a link shows."""
MIN_LINK_LIFE, MAX_LINK_LIFE = MINUTE, 90 * DAY
"""Time for which a link is valid, in milliseconds."""
MAX_SWITCHES = 100
"""Maximum number of switches set by operators, and likewise by all owners together, besides the switch for all tasks.
Each of these kinds of switches is stored in one item that every worker reads."""
MAX_SWITCH_REASON_LENGTH = 128
MAX_QUOTA_OWNERS = 500
"""Maximum number of owners with their own quotas, which are stored in one item that the API and workers read."""
MAX_QUOTA = 1_000_000_000
"""Largest limit of a quota."""
MAX_TYPES_WITH_DEFAULTS = 100
"""Maximum number of types to which an owner can give defaults, which are stored in one item that task creations
read."""
MAX_HOST_LENGTH = 253
"""Maximum number of characters in a host's name (Source: RFC 1035, 2.3.4, as text)."""
MAX_LEASES = 10
"""Maximum number of tasks that a pull worker's request can lease, as in an SQS receive (Source: SQS API Reference,
ReceiveMessage)."""
MAX_PULLED_TYPES = 10
"""Maximum number of types in a pull worker's request."""
MAX_PULL_WAIT_SECONDS = 20
"""Longest wait of a pull worker's request, as for an SQS receive (Source: SQS API Reference, ReceiveMessage)."""
MIN_LEASE_SECONDS = 5
"""Shortest lease of a pull worker, which leaves time for three heartbeats per lease."""
MAX_LEASE_SECONDS = 900
"""Longest lease of a pull worker; a lost worker is detected when its lease ends."""
LEASE_SECONDS = 30
"""Default lease of a pull worker."""
LEAST_LEASE_SHARE = 2
"""A pull worker gets a lease only if at least half of the lease's time (1 divided by this number) is left. Otherwise,
the task is enqueued again."""
MAX_WORKER_NAME_LENGTH = 40
"""Maximum number of characters in a pull worker's name, which is stored with the lease and with each attempt."""
MAX_LEASED_BYTES = 1_048_576
"""Maximum total size of payloads and checkpoints in one response to a pull worker, unless the first task's content is
larger (Source: AWS Lambda quotas: a response has at most 6 MB, in which escaped quotation marks count twice)."""
MAX_LEASE_TOKEN_LENGTH = 2_048
MAX_ACTION_REASON_LENGTH = 256
"""Maximum number of characters in the reason that a user gives for an action on a task."""
MAX_QUERY_ANSWER_BYTES = 65_536
"""Maximum number of bytes of an endpoint's response to a query that are returned."""
QUERY_TIMEOUT = 10 * SECOND
"""How long an endpoint can take to respond to a query."""
MIN_LATE_SECONDS = 60
"""Shortest time after the due time at which a late start can be reported, because the trigger checks once per
minute."""
MAX_LATE_SECONDS = 604_800
"""Longest time after the due time at which a late start can be reported."""
MAX_RUNNING_SECONDS = 2_592_000
"""Longest time after an attempt's start at which its long run can be reported."""
MAX_EXPIRES_SECONDS = 2_592_000
"""Longest time limit for the start of a task's first attempt, after the due time."""
MAX_RETRY_DURATION_SECONDS = 2_592_000
"""Longest time after the start of the first attempt within which another attempt can start."""
MAX_LOCK_WAIT_SECONDS = 2_592_000
"""Longest time limit for an attempt's wait for its lock."""
SHORTEST_WORKER_LEASE_SECONDS = 15
"""Shortest lease of the worker functions, which must leave time for a second renewal before their process ends."""
MAX_METRIC_VALUES = 20
"""Maximum number of owners, and of task types, that can have their own metrics, because CloudWatch bills each
metric."""
MAX_EPOCH = 999
"""How many times a table can be restored, because a fence has at most twelve digits."""
MAX_RETENTION_DAYS = 3_653
"""Maximum number of days for which ended tasks can be read: ten years."""
MAX_ARCHIVE_DAYS = 3_653
"""Maximum number of days for which the archive can keep ended tasks: ten years."""
MAX_SUMMARY_OWNERS = 25
"""Maximum number of owners on a page of `GET /v1/summary/owners`, whose counts are read one owner at a time."""
MAX_SUMMARY_TYPES = 100
"""Maximum number of types in one response of `GET /v1/summary`, which contains the types with the most tasks."""


MAX_REMARKS = 20
"""Maximum number of entries in the `skipped_runs` of a schedule."""
MAX_REMARK_LENGTH = 160
"""Maximum number of characters in the reason in an entry of a schedule's `skipped_runs`."""
MAX_REVISION_ENDS = 200
"""Maximum number of earlier definitions of a schedule with the same timing that are distinguished. Definitions without
an occurrence do not count."""
MAX_STOPPED_OCCURRENCES = 1_000
"""Maximum number of occurrences of a schedule that are stored as stopped by their user, so that later changes do not
run these occurrences again."""
MAX_WAIT_REASON_LENGTH = 80
"""Maximum number of characters in the stored reason why a task waits."""
MAX_RECORDED_WAITS = 6
"""Maximum number of a task's waits that are stored with their start times. The latest waits and the first wait for a
lock are stored."""
MAX_RECORDED_WAIT_LENGTH = 40
"""Maximum number of characters in a wait's stored reason."""
ATTEMPT_ERROR_LENGTH = 96
"""Maximum number of characters in an earlier attempt's stored error message. The last attempt's message is stored in
full."""
MAX_LOGGED_TRACEBACK_LENGTH = 100_000
"""Maximum number of characters in a logged traceback, counted from its end (Source: CloudWatch Logs quotas, 256 KB a
line)."""
MAX_TRACEBACK_BYTES = 900
"""Maximum compressed size of a stored traceback, which with its keys takes one write unit. An encrypted traceback takes
up to four write units."""
ATTEMPTS_INLINE = 5
"""Maximum number of attempts that are stored in the record; older attempts are moved to separate items."""
ACTIONS_INLINE = 10
"""Maximum number of user actions in a task's record. If there are more, the oldest actions are dropped and counted."""
ACTIONS_INLINE_BYTES = 1_000
"""Maximum total size of the actions in a record before compression, in bytes. The newest action is kept regardless of
its size."""
INLINE_CONTENT_BYTES = 512
"""A compressed payload or result up to this size is stored in the record, which must stay below 1 KB."""
INLINE_EVENT_BYTES = 640
"""The compressed event of a callback up to this size is stored in the callback's record."""
ITEM_CONTENT_BYTES = 200_000
"""A compressed payload or result up to this size is stored in a separate item; a larger payload or result is stored in
S3."""
