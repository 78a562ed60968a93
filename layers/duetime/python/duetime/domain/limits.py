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
"""Longest attempt, with all its phases: the time of the worker function less that to hold, claim and finish."""

MAX_DEADLINE_SECONDS = 2_592_000
"""Longest time limit of an asynchronous attempt: thirty days."""
MAX_WAIT_SECONDS = 25
"""Longest time that a request waits for the end of a task; API Gateway waits thirty seconds."""
MAX_CHECKPOINT_BYTES = 4_096
"""Size of the checkpoint that a paused attempt leaves for the next one, in bytes of JSON."""

CONTENT_OUTLIVES_RECORD = 7 * DAY
"""A payload or result outside its record, and an old line of its history, expires so much later than the record:
DynamoDB removes what has expired within a few days, in any order (Source: DynamoDB Developer Guide, "Time to Live")."""
UNREFERENCED_CONTENT_LIFE = 90 * DAY
"""What is written outside a record before the record refers to it expires so long after its task is due, unless that
expiry is taken away: nothing stays for ever because its writer vanished."""
UNREFERENCED_OBJECT_LIFE_DAYS = 400
"""The same for an object in S3, in days from when it was written: a lifecycle rule knows of no due time."""

MAX_LOCK_KEY_LENGTH = 64
MAX_LOCK_HOLDERS = 100
"""Largest `max_holders` of a lock; each holder is some 50 bytes of the lock's one item."""
LOCK_CHECK_INTERVAL = 5 * MINUTE
"""How often a task that waits for a lock checks it; it also gets the lock as soon as that is released."""
LOCK_LIFE = DAY
"""A lock is removed this long after its last use, and a waiting entry this long after the longest hold before it."""
LONGEST_LOCK_HOLD = 31 * DAY
"""Longest time for which a lock is held after it was taken or renewed: an asynchronous attempt can take
`MAX_DEADLINE_SECONDS`, and a topology `TOPOLOGY_MARGIN` longer."""

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
"""Changes of a schedule, none of them about its timing, before each of which what was due may still wait to run."""
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
"""A graph's JSON, in bytes of UTF-8: an answer that shows it with where its nodes stand has to fit into the 6 MB of a
function's (Source: AWS Lambda quotas)."""
MAX_NODE_KEY_LENGTH = 128
MAX_EXPECTED_SECONDS = 2_592_000
"""Longest expected duration of a node: thirty days, as long as an asynchronous attempt can take."""
MAX_INPUTS_BYTES = 1_048_576
"""Size of all results of parents that a node is given, in bytes of UTF-8."""
EDGES_PER_CHUNK = 100
"""Dependencies of one node that are counted in one item: its numbers stay within one write unit."""
WAITS_AT_ONCE = 40
"""Nodes that one execution waits for: most iterations of an inline map at a time (Source: Step Functions Developer
Guide, Map state)."""
SHORTEST_CHECK_INTERVAL = 5 * MINUTE
"""A topology that runs is watched for the first time at this age, and then whenever it is a quarter older."""
LONGEST_CHECK_INTERVAL = HOUR
"""Longest time between two such checks."""
TOPOLOGY_RETRY_PAUSE = MINUTE
"""How long a retried topology waits before it checks again whether the nodes of its last run have ended."""
NODE_MARGIN = 2 * DAY
"""How long nodes are kept beyond their topology's own task. TTL removes within two days (Source: DynamoDB Developer
Guide, "Using time to live"): whoever sees the topology sees its nodes, and a retry of the last moment finds them."""
RUN_STATE_LIFE = 400 * DAY
"""How long the state of a topology's run is kept, from its last change after the run has ended."""
TOPOLOGY_MARGIN = 15 * MINUTE
"""How much longer than its `timeout_seconds` a topology can take to stop its running nodes and to end."""

MAX_EVENT_AHEAD = 5 * MINUTE
"""How far ahead of the clock the time of an event can be that creates tasks."""
MAX_EVENT_NAME_LENGTH = 256
"""Characters of the id and the source of such an event."""
MAX_REASON_LENGTH = 1_000
"""Characters that are kept of the reason why an event cannot become a task."""

MAX_SWITCHES = 100
"""Switches of a deployment; they are stored in one item, which every worker reads."""
MAX_SWITCH_REASON_LENGTH = 128
SWITCHES_LIFE = 5 * SECOND
"""How long a process uses the switches that it has read."""
SHORTEST_STOP = 30 * SECOND
"""Shortest time after which a task that is stopped by a switch is checked again."""
LONGEST_STOP = 85 * SECOND
"""Longest time after which a task that is stopped by a switch is checked again: with `SWITCHES_LIFE`, within 90
seconds."""

SHORTEST_NOT_SENT_WAIT = SECOND
"""A task whose call never left, because what was to take it was throttled, is tried again after this at the least."""
LONGEST_NOT_SENT_WAIT = MINUTE
"""The same at the most: the wait grows with the time for which the task has been due."""

CIRCUIT_THRESHOLD = 5
"""Number of consecutive failed calls of an owner to a host, as one process sees them, that open the circuit."""
CIRCUIT_PATIENCE = 10 * SECOND
"""A call that was given less time than this, or than twice what its host usually takes to answer, and timed out, says
nothing of the host."""
CIRCUIT_OPEN = 30 * SECOND
"""How long a circuit is open at first; the time doubles whenever the probe fails."""
CIRCUIT_LONGEST_OPEN = 10 * MINUTE
CIRCUIT_LIFE = 5 * SECOND
"""How long a process uses what it has read of a host's circuit."""
CIRCUIT_SPREAD = 15 * SECOND
"""Tasks that a circuit holds back are spread over this time after it, so that they do not run all at once."""
CIRCUIT_FORGOTTEN = DAY
"""The circuit of a host that nobody has called for so long since it opened is removed."""
MAX_CIRCUITS_KNOWN = 1_000
"""Circuits that a process keeps in mind, one for each owner and host; one that it forgets is read again."""
MAX_HOST_LENGTH = 253
"""Characters of a host's name (Source: RFC 1035, 2.3.4, as text)."""

MAX_LEASES = 10
"""Tasks that one request of a pull worker leases: what SQS returns at once (Source: SQS API Reference,
ReceiveMessage)."""
MAX_PULLED_TYPES = 10
"""Types in one request of a pull worker."""
MAX_PULL_WAIT_SECONDS = 20
"""Longest time that a request of a pull worker waits for tasks: what SQS waits (Source: SQS API Reference,
ReceiveMessage)."""
MIN_LEASE_SECONDS = 5
"""Shortest lease of a pull worker: a heartbeat every third of it must have time to travel."""
MAX_LEASE_SECONDS = 900
"""Longest lease of a pull worker: its loss is noticed after the lease."""
LEASE_SECONDS = 30
"""Length of a pull worker's lease, if the request does not say it."""
LEAST_LEASE_SHARE = 2
"""A lease is handed out only if at least this part of it is left, one half; else the task is returned at once."""
MAX_WORKER_NAME_LENGTH = 40
"""Characters of a pull worker's name: the record keeps it for the lease and for each attempt."""
MAX_LEASED_BYTES = 1_048_576
"""Payloads and checkpoints that one answer hands out together, unless the first alone is larger (Source: AWS Lambda
quotas: an answer has 6 MB, in which quotation marks count twice)."""
MAX_LEASE_TOKEN_LENGTH = 2_048

MAX_ERROR_TYPE_LENGTH = 64
MAX_ERROR_MESSAGE_LENGTH = 256
"""Characters of an error's message that are kept; a longer one is cut."""
MAX_PROGRESS_MESSAGE_LENGTH = 64
MAX_WAIT_REASON_LENGTH = 80
"""Characters that the record keeps of what a task waits for."""
ATTEMPT_ERROR_LENGTH = 96
"""Characters of an earlier attempt's error message that are kept; the record holds the last attempt's in full."""
ATTEMPTS_INLINE = 5
"""Attempts whose attempt records the record itself keeps; older lines move to an item of their own."""

INLINE_CONTENT_BYTES = 512
"""A compressed payload or result up to this size lies in the record, which must stay under 1 KB."""
ITEM_CONTENT_BYTES = 200_000
"""A compressed payload or result up to this size lies in an item of its own; a larger one in S3."""

MAX_CLOCK_DIFFERENCE = 5 * SECOND
"""How much clocks can differ before two leases could overlap; a lease is taken over only after this time."""
LATEST_ARRIVAL = MINUTE
"""How long after it was sent, and given up by its sender, a write may still take effect."""
DELETION_MARKER_LIFE = 7 * DAY
"""How long the mark of a deleted schedule or calendar stays in its place, so that nothing older can come back: far
longer than any process lives, or a write travels (`LATEST_ARRIVAL`)."""
DIRECT_SLACK = 30 * SECOND
"""How much later than its look-ahead the trigger may have read a minute, clocks and slowness included."""
CLOCK_TOLERANCE = DIRECT_SLACK
"""By how much the trigger's clock may differ from the database's; it does nothing while it differs more. The answer
that tells it counts whole seconds."""
MAX_DELAY = 900 * SECOND
"""Longest delay of an SQS message (Source: SQS quotas)."""
MAX_HOLD = 5 * SECOND
"""Longest that a worker holds a message for its due time; a message further ahead goes back to the queue.
A message comes up to two seconds early, and by a clock that is behind it seems earlier still."""
CLAIM_LEAD = 10
"""A worker claims this long before the due time, so that the claim's own time makes nothing late."""
MAX_QUERY_ANSWER_BYTES = 65_536
"""Bytes of an endpoint's response to a query that are passed on."""
QUERY_TIMEOUT = 10 * SECOND
"""How long an endpoint can take to respond to a query."""
CALLBACK_TRIES = 3
"""How often a task's callback is tried; the outcome stands even if all tries fail."""
CALLBACK_TIMEOUT = 5 * SECOND
"""Time limit of one try of a callback."""
CALLBACK_PAUSE = SECOND
"""Wait between the first try of a callback and the second; it doubles."""
CALLBACK_MARGIN = 20 * SECOND
"""How much longer a worker may take to follow an outcome up, if there is a callback to be made."""
HANDLERS_RETRY = MINUTE
"""How long until a package of handlers that cannot be imported is tried again, with the tasks that need it."""
OVERDUE_GRACE = SECOND
"""How long after its deadline an attempt may still end by itself before its process is ended."""
FUNCTION_END_MARGIN = 10 * SECOND
"""What follows an outcome is begun only if it ends so long before its function does; else another one does it."""
PROCESS_END_TIME = 3 * SECOND
"""How long a process that must end may take to write down what has not ended in it, before it ends all the same."""
SHORTEST_WORKER_LEASE_SECONDS = 15
"""Shortest lease of the worker functions: it must leave time to renew it a second time before their process ends."""
HEARTBEATS_PER_LEASE = 3
"""A lease is renewed so many times in its length; an attempt that could not renew it ends with its process."""
LEASE_RETURN_MARGIN = MAX_CLOCK_DIFFERENCE + SECOND
"""A message whose task is leased comes back this long after the lease's end."""

TIMER_LIFE = 400 * DAY
"""A timer is removed this long after its minute. The trigger and its last recovery scan must have read it by then:
this is how long the trigger may be away."""
RECOVERY_SCAN_DELAYS = (2 * MINUTE, HOUR, DAY)
"""How long after its end a minute is read again."""
RECOVERY_SCAN_BACKLOG = 1_000
"""A recovery scan waits while its queue has more messages than this, so that a backlog does not feed itself."""
TICK_BUDGET = 50 * SECOND
"""How long one invocation of the trigger reads on; the next one goes on where it stopped."""
GROUP_HOLD = 70 * SECOND
"""How long a group of shards is held for reading without a renewal."""
LONGEST_HOLD = GROUP_HOLD + MINUTE
"""A hold that seems to last longer than this was taken by a clock that was wrong, and counts for nothing."""
LONGEST_ROUND = 150 * SECOND
"""How much longer it may go on to give every open minute its turn; its function has time for that."""
CURSOR_SAVE_INTERVAL = 10 * SECOND
"""How often the cursors are saved while the trigger reads on: what was done since is done again after a crash."""
MINUTE_PAGE = 250
"""Items of one shard of a minute that are read at once: the trigger holds no more than a page of each shard."""
SLICE = 500
"""Items of a minute that are served before another minute has its turn."""
LONGEST_PASSING = 5 * SECOND
"""How long it passes over what is sent for other queues before another minute has its turn."""
OPEN_MINUTES = 4
"""Minutes that are read side by side: a minute that takes long does not hold up those after it."""
LARGE_MINUTE = 5_000
"""Messages of one queue in one minute; a queue that has more, or more than one tick can send, goes on alone, so that
the others need not wait for it."""
SHARDS_SETTLE = HOUR
"""A new number of shards counts so long after it was announced for what must get the same id again: everybody knows of
it by then."""
SHARDS_KNOWN = 10 * MINUTE
"""How long a process goes by what it has read of the number of shards, where the same id must come out again."""
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
"""Partitions of one owner's list. A constant: changing it needs the index written again."""
