"""All limits of duetime: the API rejects by them, the docs and the OpenAPI document show them."""

from __future__ import annotations

from duetime.domain.times import DAY, HOUR, MINUTE, SECOND

MAX_DUE_AHEAD = 3_653 * DAY
"""How far in the future a task can be due: ten years."""

MAX_PAYLOAD_BYTES = 1_048_576
"""Size of a payload's JSON, in bytes of UTF-8."""
MAX_RESULT_BYTES = 262_144
"""Size of a result's JSON, in bytes of UTF-8; a larger result fails the attempt."""
MAX_BODY_BYTES = 5_242_880
"""Size of a request's body, in bytes. API Gateway passes on 10 MB, Lambda accepts 6 MB (Source: AWS Lambda quotas)."""
MAX_JSON_DEPTH = 64
"""Levels of nesting in a request's JSON."""
MAX_NUMBER_DIGITS = 38
"""Digits of a number: DynamoDB's own precision (Source: DynamoDB Developer Guide, "Number")."""

MAX_BATCH = 100
"""Tasks in one `POST /v1/tasks/batch`, and ids in one `GET /v1/tasks?ids=`."""
MAX_PAGE = 100
"""Tasks on one page of a list."""
MAX_EXPANDED_PAGE = 20
"""Tasks on one page of a list that shows payloads or results."""
MAX_EXPANDED_BYTES = 2_000_000
"""Bytes of payloads and results on such a page, which ends before the task that would exceed them."""
MAX_EXAMINED = 1_000
"""Records that one page of a filtered list reads before it returns a token to continue with."""

BULK_INLINE = 1_200
"""Milliseconds for which a request on many tasks works before the response; a bulk operation does the rest."""
BULK_INLINE_NODES = 500
"""A topology with more nodes than this is paused, resumed or cancelled by a bulk operation."""
BULK_STEP = 5 * SECOND
"""How long a bulk operation works before it stores its progress and checks whether it was cancelled."""
BULK_LEASE = 30 * SECOND
"""When a bulk operation has stored no progress for this long, another invocation continues it; longer than a step and
the longest pause between tasks."""
BULK_INVOCATION = 12 * MINUTE
"""How long one invocation runs a bulk operation; the next one continues from there."""
BULK_RETENTION = 7 * DAY
"""How long a bulk operation that has ended can be read."""
MAX_BULK_PAGE = 50
"""Bulk operations in a list: the latest ones."""
MIN_BULK_PACE = 0.1
"""Slowest pace of a bulk operation, in tasks a second."""
MAX_BULK_PACE = 1_000
"""Fastest pace of a bulk operation, in tasks a second."""

WATCH_TICKET_LIFE = 30 * SECOND
"""How long a ticket for a WebSocket connection can be used; each opens one connection."""
WATCH_CONNECTION_LIFE = 2 * HOUR + 10 * MINUTE
"""How long a connection and its subscriptions are kept: longer than API Gateway keeps one open, which is two hours
(Source: API Gateway quotas for WebSocket APIs)."""
MAX_SUBSCRIPTIONS = 20
"""Subscriptions of one connection."""
MAX_OWNER_SUBSCRIPTIONS = 1_000
"""Subscriptions of one owner, over all connections."""
MAX_WATCH_REF_LENGTH = 64
"""Characters of a client's own name for a subscription."""
MAX_WATCH_MESSAGE_BYTES = 16_384
"""Size of a message from a client, in bytes."""
MAX_FRAME_BYTES = 32_768
"""Size of a message to a client, in bytes: API Gateway bills each 32 KB of one (Source: API Gateway pricing)."""
MAX_PUSHED_CHANGES = 100
"""Changes that a connection is sent of one batch of writes; of more it is told to read again what it watches."""

MAX_TYPE_LENGTH = 64
MAX_NAME_LENGTH = 128
MAX_OWNER_LENGTH = 128
MAX_URL_LENGTH = 2_048
MAX_ARN_LENGTH = 256
"""Characters of the ARN of an AWS target, which the record keeps."""
MAX_DETAIL_TYPE_LENGTH = 128
"""Characters of an event's detail type (Source: EventBridge API Reference, PutEventsRequestEntry)."""
MAX_TAGS = 10
MAX_TAG_KEY_LENGTH = 32
MAX_TAG_VALUE_LENGTH = 64
MAX_IDEMPOTENCY_KEY_LENGTH = 255
IDEMPOTENCY_KEY_LIFE = DAY
"""How long an idempotency key is remembered; always less than the retention of ended tasks."""

MAX_ATTEMPTS = 100
"""Attempts in a retry policy."""
MAX_RETRY_WAIT_SECONDS = 86_400
"""Longest wait between two attempts in a retry policy."""
MAX_RETRY_MULTIPLIER = 100
"""Largest multiplier of a retry policy; its powers must stay within a float."""
WORKER_FUNCTION_SECONDS = 900
"""How long an invocation of the worker may take: the longest that Lambda allows (Source: AWS Lambda quotas)."""
MAX_TIMEOUT_SECONDS = 840
"""Longest attempt, with all its phases: the time of the worker function, less the time to wait, claim and finish."""

MAX_DEADLINE_SECONDS = 2_592_000
"""Longest time limit of an asynchronous attempt: thirty days."""
MAX_WAIT_SECONDS = 25
"""Longest time that a request waits for the end of a task; API Gateway waits thirty seconds."""
MAX_CHECKPOINT_BYTES = 4_096
"""Size of the checkpoint that a paused attempt leaves for the next one, in bytes of JSON."""

CONTENT_OUTLIVES_RECORD = 7 * DAY
"""How much later than its record a payload, a result or an old attempt record expires: DynamoDB removes expired items
within a few days, in any order (Source: DynamoDB Developer Guide, "Time to Live")."""
UNREFERENCED_CONTENT_LIFE = 90 * DAY
"""Content that is written before its record refers to it expires this long after the task is due, until the reference
is written and removes the expiry: content is not leaked if its writer fails in between."""
UNREFERENCED_OBJECT_LIFE_DAYS = 400
"""The same for an object in S3, in days since it was written: a lifecycle rule does not know the due time."""

MAX_LOCK_KEY_LENGTH = 64
MAX_LOCK_HOLDERS = 100
"""Largest `max_holders` of a lock; each holder is some 50 bytes of the lock's one item."""
LOCK_CHECK_INTERVAL = 5 * MINUTE
"""How often a task that waits for a lock checks it; it also gets the lock as soon as that is released."""
LOCK_LIFE = DAY
"""A lock is removed this long after its last use, and a waiting entry this long after its lock can be held at most."""
LONGEST_LOCK_HOLD = 31 * DAY
"""Longest time for which a lock is held after it was taken or renewed: an asynchronous attempt can take
`MAX_DEADLINE_SECONDS`, and a topology `TOPOLOGY_MARGIN` longer."""

MAX_EXPLAINED_LINE = 100
"""Tasks of a lock's line that an explanation reads to find a task's place in it."""
MAX_EXPLAINED_TASKS = 100
"""Tasks that an explanation reads because another one waits for them: holders of a lock, parents, nodes."""

MAX_EXPRESSION_LENGTH = 256
"""Characters of a cron expression, a rate or an interval."""
MAX_ZONE_LENGTH = 64
MAX_DATES = 1_000
"""Date-times in the `dates` of a schedule."""
MAX_PERIOD_DAYS = 3_653
"""Longest time between two occurrences of a rate or an interval, and longest gap of `permanent`: ten years."""
MAX_JITTER_SECONDS = 86_400
"""Largest jitter of a schedule."""
MAX_CATCH_UP_SECONDS = 2_592_000
"""Longest `catch_up_seconds` of a schedule: thirty days."""
MIN_EXPECT_EVERY_SECONDS = 60
"""Shortest `expect_every_seconds` of a schedule."""
MAX_EXPECT_EVERY_SECONDS = 604_800
"""Longest `expect_every_seconds` of a schedule: seven days."""
EXPECTATION_READS = 1_000
"""Occurrences that are looked at, the latest first, to find one that has met what is expected of its schedule."""
MAX_OCCURRENCES = 1_000
"""Occurrences in one preview or list."""
MAX_NOTE_LENGTH = 256
"""Characters of the reason why a schedule is paused."""
MAX_BACKFILL_PER_MINUTE = 6_000
"""Fastest pace of a backfill, in occurrences a minute."""
MAX_BACKFILLS = 5
"""Backfills of one schedule in progress at once; the latest that have finished can be read, too."""
MAX_REMARKS = 20
"""Entries in the `skipped_runs` of a schedule."""
MAX_REMARK_LENGTH = 160
"""Characters of the reason in such an entry."""
MAX_REVISION_ENDS = 20
"""Earlier definitions of a schedule with the same timing whose occurrences may still be waiting to run."""
MISSED_AFTER = 10 * SECOND
"""An occurrence that is found later than this after its time was missed; `catch_up_seconds` decides whether it runs."""
PERMANENT_CHECK_INTERVAL = 5 * MINUTE
"""How often a permanent schedule is checked, in case the chain of its runs has broken."""
LONGEST_SLEEP = 7 * DAY
"""How often a schedule is checked whose next occurrence is far ahead: the rules of time zones change."""
OVERLAP_CHECK_INTERVAL = MINUTE
"""How often an occurrence that waits for the previous run checks it; it also runs as soon as that one ends."""
MAX_CALENDARS = 8
"""Calendars that one schedule can use."""
MAX_CALENDAR_DATES = 5_000
"""Dates and spans in one calendar, including those of recurring events."""
MAX_CALENDAR_WINDOWS = 64
MAX_CALENDAR_BYTES = 1_048_576
"""An iCalendar file, in bytes."""
MAX_CALENDAR_RULES = 100
"""Recurring events in one iCalendar file."""
WORKING_MOMENT_HORIZON = 731 * DAY
"""How far an occurrence can be moved to a time that no calendar excludes: two years."""

MAX_NODES = 10_000
"""Nodes of one topology."""
MAX_EDGES = 50_000
"""Dependencies among the nodes of one topology; each is a write of its own."""
MAX_GRAPH_BYTES = 2_097_152
"""Size of a graph, in bytes of JSON in UTF-8: a response with the graph and the states of its nodes must fit into
6 MB (Source: AWS Lambda quotas)."""
MAX_NODE_KEY_LENGTH = 128
MAX_EXPECTED_SECONDS = 2_592_000
"""Longest expected duration of a node: thirty days, as long as an asynchronous attempt can take."""
MAX_INPUTS_BYTES = 1_048_576
"""Size of the results of all parents that a node receives, in bytes of UTF-8."""
EDGES_PER_CHUNK = 100
"""Dependencies of one node that are counted in one item: its numbers stay within one write unit."""
WAITS_AT_ONCE = 40
"""Nodes that one execution waits for at a time: the limit of an inline map (Source: Step Functions Developer Guide,
Map state)."""
SHORTEST_CHECK_INTERVAL = 5 * MINUTE
"""Age at which a running topology is checked for the first time; each further check is when it is a quarter older."""
LONGEST_CHECK_INTERVAL = HOUR
"""Longest time between two such checks."""
TOPOLOGY_RETRY_PAUSE = MINUTE
"""How long a retried topology waits before it checks again whether the nodes of its last run have ended."""
NODE_MARGIN = 2 * DAY
"""How much longer than their topology nodes are kept. TTL removes items within two days (Source: DynamoDB Developer
Guide, "Using time to live"), so a topology that can still be read or retried has all its nodes."""
RUN_STATE_LIFE = 400 * DAY
"""How long the state of a topology's run is kept, from its last change after the run has ended."""
TOPOLOGY_MARGIN = 15 * MINUTE
"""How much longer than its `timeout_seconds` a topology can take to stop its running nodes and to end."""

MAX_EVENT_AHEAD = 5 * MINUTE
"""How far in the future the time of an event that creates tasks can be."""
MAX_EVENT_NAME_LENGTH = 256
"""Characters of the id and the source of such an event."""
MAX_REASON_LENGTH = 1_000
"""Characters of the stored reason why an event was rejected."""

MAX_SWITCHES = 100
"""Switches of a deployment; they are stored in one item, which every worker reads."""
MAX_SWITCH_REASON_LENGTH = 128
SWITCHES_LIFE = 5 * SECOND
"""How long a process caches the switches."""
SHORTEST_STOP = 30 * SECOND
"""Shortest time after which a task that is stopped by a switch is checked again."""
LONGEST_STOP = 85 * SECOND
"""Longest time after which a task that is stopped by a switch is checked again: with `SWITCHES_LIFE`, within 90
seconds."""

SHORTEST_NOT_SENT_WAIT = SECOND
"""Shortest wait of a task whose call was not sent, because the service that should receive it was throttled."""
LONGEST_NOT_SENT_WAIT = MINUTE
"""Longest such wait: the wait grows with the time since the due time."""

CIRCUIT_THRESHOLD = 5
"""Number of consecutive failed calls of an owner to a host, as one process sees them, that open the circuit."""
CIRCUIT_PATIENCE = 10 * SECOND
"""A timeout shorter than this, or than twice the usual response time of the host, does not count as a failure of the
host."""
CIRCUIT_OPEN = 30 * SECOND
"""How long a circuit is open at first; the time doubles whenever the probe fails."""
CIRCUIT_LONGEST_OPEN = 10 * MINUTE
CIRCUIT_LIFE = 5 * SECOND
"""How long a process caches the state of a circuit."""
CIRCUIT_SPREAD = 15 * SECOND
"""Tasks that waited for a circuit are spread over this time after it closes, so that they do not run all at once."""
CIRCUIT_FORGOTTEN = DAY
"""The circuit of a host that has not been called for this long since it opened is removed."""
MAX_CIRCUITS_KNOWN = 1_000
"""Circuits that a process caches, one for each owner and host."""
MAX_HOST_LENGTH = 253
"""Characters of a host's name (Source: RFC 1035, 2.3.4, as text)."""

MAX_LEASES = 10
"""Tasks that one request of a pull worker can lease: the limit of one SQS receive (Source: SQS API Reference,
ReceiveMessage)."""
MAX_PULLED_TYPES = 10
"""Types in one request of a pull worker."""
MAX_PULL_WAIT_SECONDS = 20
"""Longest time that a request of a pull worker waits for tasks: the limit of SQS (Source: SQS API Reference,
ReceiveMessage)."""
MIN_LEASE_SECONDS = 5
"""Shortest lease of a pull worker: it leaves time for a heartbeat every third of it."""
MAX_LEASE_SECONDS = 900
"""Longest lease of a pull worker: a lost worker is detected when its lease ends."""
LEASE_SECONDS = 30
"""Default lease of a pull worker."""
LEAST_LEASE_SHARE = 2
"""A lease is returned to a pull worker only if at least one half (1 divided by this) of it is left; otherwise the task
is enqueued again."""
MAX_WORKER_NAME_LENGTH = 40
"""Characters of a pull worker's name, which is stored with the lease and with each attempt."""
MAX_LEASED_BYTES = 1_048_576
"""Size of all payloads and checkpoints in one response to a pull worker, unless the first alone is larger (Source: AWS
Lambda quotas: a response has at most 6 MB, in which escaped quotation marks count twice)."""
MAX_LEASE_TOKEN_LENGTH = 2_048

MAX_ERROR_TYPE_LENGTH = 64
MAX_ERROR_MESSAGE_LENGTH = 256
"""Characters of a stored error message; a longer one is truncated."""
MAX_PROGRESS_MESSAGE_LENGTH = 64
MAX_WAIT_REASON_LENGTH = 80
"""Characters of the stored reason why a task waits."""
MAX_RECORDED_WAITS = 6
"""Stored waits of a task: the latest ones, each with when it began."""
MAX_RECORDED_WAIT_LENGTH = 40
"""Characters of the stored reason of such a wait."""
ATTEMPT_ERROR_LENGTH = 96
"""Characters of the stored error message of an earlier attempt; the last attempt's is stored in full."""
MAX_LOGGED_TRACEBACK_LENGTH = 100_000
"""Characters of a logged traceback: the last ones (Source: CloudWatch Logs quotas, 256 KB a line)."""
MAX_TRACEBACK_LENGTH = 4_000
"""Characters of a stored traceback: the last ones, or fewer if they do not compress to `MAX_TRACEBACK_BYTES`."""
MAX_TRACEBACK_BYTES = 900
"""Size of a stored traceback, compressed: with its keys, one write unit."""
ATTEMPTS_INLINE = 5
"""Attempts that are stored in the record; older ones are moved to items of their own."""
MAX_ACTION_REASON_LENGTH = 256
"""Characters of the reason that a user gives for an action on a task."""
ACTIONS_INLINE = 10
"""Actions of users that the record of a task keeps; of more, the oldest are dropped and counted."""
ACTIONS_INLINE_BYTES = 1_000
"""Bytes that the actions in a record may have together before compression; the newest is kept whatever its size."""

INLINE_CONTENT_BYTES = 512
"""A compressed payload or result up to this size is stored in the record, which must stay below 1 KB."""
ITEM_CONTENT_BYTES = 200_000
"""A compressed payload or result up to this size is stored in an item of its own; a larger one in S3."""

MAX_CLOCK_DIFFERENCE = 5 * SECOND
"""How much clocks can differ before two leases could overlap; a lease is taken over only after this time."""
LATEST_ARRIVAL = MINUTE
"""How long after a write was sent, and timed out, it may still take effect."""
DELETION_MARKER_LIFE = 7 * DAY
"""How long the deletion marker of a schedule or calendar is kept, so that a late write cannot restore it: much longer
than any process runs, or a write takes (`LATEST_ARRIVAL`)."""
DIRECT_SLACK = 30 * SECOND
"""How much later than planned the trigger may have read a minute, including differences of clocks."""
CLOCK_TOLERANCE = DIRECT_SLACK
"""Largest difference between the clocks of the trigger and the database; a tick does nothing while it is larger. The
database reports its time in whole seconds."""
MAX_DELAY = 900 * SECOND
"""Longest delay of an SQS message (Source: SQS quotas)."""
MAX_HOLD = 5 * SECOND
"""Longest time that a worker waits with a message for its due time; an earlier message is returned to the queue.
Messages are delivered up to two seconds early, plus the difference of the clocks."""
CLAIM_LEAD = 10
"""How many milliseconds before the due time a worker claims a task, so that the claim does not make it late."""
MAX_QUERY_ANSWER_BYTES = 65_536
"""Bytes of an endpoint's response to a query that are returned."""
QUERY_TIMEOUT = 10 * SECOND
"""How long an endpoint can take to respond to a query."""
SPAN_EXPORT_TIME = SECOND
"""How long an invocation may take at its end to export its spans; what is not exported by then is dropped or waits."""
MIN_LATE_SECONDS = 60
"""Shortest time after the due time at which a late start can be told: the trigger looks once a minute."""
MAX_LATE_SECONDS = 604_800
"""Longest time after the due time at which a late start can be told."""
CALLBACK_TRIES = 3
"""Attempts to send a callback; the outcome does not change if all of them fail."""
CALLBACK_TIMEOUT = 5 * SECOND
"""Time limit of one attempt to send a callback."""
CALLBACK_PAUSE = SECOND
"""Wait before the second attempt to send a callback; it doubles for each further attempt."""
CALLBACK_MARGIN = 20 * SECOND
"""Additional time of a worker after an outcome, if there is a callback to send."""
HANDLERS_RETRY = MINUTE
"""How long until the import of a failed handlers package is tried again, for the tasks that need it."""
OVERDUE_GRACE = SECOND
"""How long after its deadline an attempt may still end by itself before its process is ended."""
FUNCTION_END_MARGIN = 10 * SECOND
"""Work that follows an outcome is started only if it can end this long before the function's own time limit;
otherwise another invocation does it."""
PROCESS_END_TIME = 3 * SECOND
"""How long a process that must end may take to store the state of its unfinished attempts."""
SHORTEST_WORKER_LEASE_SECONDS = 15
"""Shortest lease of the worker functions: it must leave time to renew it a second time before their process ends."""
HEARTBEATS_PER_LEASE = 3
"""Renewals during the length of one lease; an attempt that cannot renew its lease is ended with its process."""
LEASE_RETURN_MARGIN = MAX_CLOCK_DIFFERENCE + SECOND
"""A message whose task is leased becomes visible again this long after the end of the lease."""

TIMER_LIFE = 400 * DAY
"""A timer is removed this long after its minute. The trigger and its last recovery scan must have read it by then:
this is the longest outage of the trigger that loses nothing."""
RECOVERY_SCAN_DELAYS = (2 * MINUTE, HOUR, DAY)
"""How long after its end a minute is read again."""
RECOVERY_SCAN_BACKLOG = 1_000
"""A recovery scan waits while its queue has more messages than this, so that a backlog does not feed itself."""
TICK_BUDGET = 50 * SECOND
"""How long one invocation of the trigger reads; the next one continues where it stopped."""
GROUP_HOLD = 70 * SECOND
"""Length of the lease on a group of shards, without a renewal."""
LONGEST_HOLD = GROUP_HOLD + MINUTE
"""A lease on a group of shards that ends later than this was written with a wrong clock, and is ignored."""
LONGEST_ROUND = 150 * SECOND
"""Additional time of an invocation to process each open minute once; the function's time limit allows it."""
CURSOR_SAVE_INTERVAL = 10 * SECOND
"""How often the cursors are saved while the trigger reads; after a crash, reading is repeated from the saved ones."""
MINUTE_PAGE = 250
"""Items of one shard of a minute in one page: the trigger has at most one page of each shard in memory."""
SLICE = 500
"""Items of a minute that are processed before the next open minute continues."""
LONGEST_PASSING = 5 * SECOND
"""How long the items of other queues are skipped before the next open minute continues."""
OPEN_MINUTES = 4
"""Minutes that are read concurrently: a minute that takes long does not delay those after it."""
LARGE_MINUTE = 5_000
"""Messages of one queue in one minute. A queue with more, or with more than one tick can send, is processed separately,
so that the others do not wait for it."""
SHARDS_SETTLE = HOUR
"""How long after its announcement a new number of shards is used for ids that must be reproducible: every process has
read it by then."""
SHARDS_KNOWN = 10 * MINUTE
"""How long a process caches the number of shards, for ids that must be reproducible."""
MAX_METRIC_VALUES = 20
"""Owners, and types of tasks, that can have metrics of their own: CloudWatch bills each one."""
ON_TIME = SECOND
"""An attempt that starts at most this long after its planned start is counted as on time. For a later one, the record
also has the times at which its message was sent and received."""
LATE_EVENT_AFTER = MINUTE
"""How long after its due time a task's first attempt starts, at least, for an event to tell of it."""
SUMMARY_STEPS_KEPT = 3 * DAY
"""How long after a write its step in the summary's counts is remembered: the table's stream tells of it again for a day
at most."""
SUMMARY_TYPES_AT_ONCE = 90
"""Types of tasks whose counts are written at once: a transaction takes 100 items (Source: DynamoDB API Reference)."""
MAX_SUMMARY_TYPES = 100
"""Types in one response of `GET /v1/summary`: those with the most tasks."""
SUMMARY_PAGES = 10
"""Pages of a megabyte that are read of one part of an owner's counts: some 40 000 types of tasks."""
OWNER_SPREAD = 16
"""Partitions of the list of one owner. A constant: another value requires the index to be rewritten."""
