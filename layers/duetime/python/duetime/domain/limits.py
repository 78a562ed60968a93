"""Every limit of duetime, written down once: the API rejects by them, the docs and the OpenAPI page show them."""

from __future__ import annotations

from duetime.domain.times import DAY, HOUR, MINUTE, SECOND

MAX_DUE_AHEAD = 3_653 * DAY
"""A task may be due this far ahead: ten years."""

MAX_PAYLOAD_BYTES = 1_048_576
"""A payload's JSON, in bytes of UTF-8."""
MAX_RESULT_BYTES = 262_144
"""A result's JSON, in bytes of UTF-8; a larger one fails the attempt."""
MAX_BODY_BYTES = 5_242_880
"""A request's body. API Gateway hands on 10 MB, Lambda takes 6 MB (Source: AWS Lambda quotas)."""
MAX_JSON_DEPTH = 64
"""Nesting of a request's JSON."""
MAX_NUMBER_DIGITS = 38
"""Digits of a number: DynamoDB's own precision (Source: DynamoDB Developer Guide, "Number")."""

MAX_BATCH = 100
"""Tasks in one `POST /v1/tasks/batch`, and ids in one `GET /v1/tasks?ids=`."""
MAX_PAGE = 100
"""Tasks on one page of a list."""
MAX_EXAMINED = 1_000
"""Records that one page of a filtered list reads at most before it hands out a token to go on."""

BULK_INLINE = 1_200
"""Milliseconds that a request which concerns many tasks works before it is answered; what is left then goes on in a
bulk operation."""
BULK_INLINE_NODES = 500
"""A topology of more nodes than this is paused, resumed or stopped by a bulk operation."""
BULK_STEP = 5 * SECOND
"""How long a bulk operation goes on before it stores how far it is, and checks whether it is still wanted."""
BULK_LEASE = 30 * SECOND
"""Whoever runs a bulk operation and stores nothing for so long is replaced; longer than a step and the longest
pause of its pace."""
BULK_INVOCATION = 12 * MINUTE
"""How long one invocation runs an operation; the next goes on from there."""
BULK_RETENTION = 7 * DAY
"""How long a bulk operation that has ended can be read."""
MAX_BULK_PAGE = 50
"""Bulk operations in one list: the latest."""
MIN_BULK_PACE = 0.1
"""Slowest pace of such a request, in tasks a second."""
MAX_BULK_PACE = 1_000

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
"""How long an idempotency key is remembered; always less than a finished record's retention."""

MAX_ATTEMPTS = 100
"""Attempts that a retry policy may ask for."""
MAX_RETRY_WAIT_SECONDS = 86_400
"""Longest wait between two attempts that a retry policy may ask for."""
MAX_RETRY_MULTIPLIER = 100
"""Steepest growth of the wait that a retry policy may ask for; its powers must stay within a float."""
WORKER_FUNCTION_SECONDS = 900
"""How long an invocation of the worker may take: the longest that Lambda allows (Source: AWS Lambda quotas)."""
MAX_TIMEOUT_SECONDS = 840
"""Longest attempt, all its phases together: the worker's function's time less that to hold, claim and finish."""

MAX_DEADLINE_SECONDS = 2_592_000
"""Longest that a target which has only accepted the work may take to notify: thirty days."""
MAX_WAIT_SECONDS = 25
"""Longest that a request to create a task waits for its end: API Gateway waits thirty seconds."""
MAX_CHECKPOINT_BYTES = 4_096
"""JSON that a paused attempt may leave for the one that goes on."""

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
"""Most holders that a lock's `limit` may allow; each is some 50 bytes of the lock's one item."""
LOCK_CHECK_INTERVAL = 5 * MINUTE
"""A task in a lock's line is let in by whoever releases; it checks by itself this often all the same."""
LOCK_LIFE = DAY
"""A lock is removed this long after its last use; a place in its line this long after the longest hold before it."""
LONGEST_LOCK_HOLD = 31 * DAY
"""No hold of a lock ends later than this after it was taken or renewed: a target may take as long as
`MAX_DEADLINE_SECONDS` to notify, and a topology `TOPOLOGY_MARGIN` longer."""

MAX_EXPRESSION_LENGTH = 256
"""Characters of a cron expression, a rate or an interval."""
MAX_ZONE_LENGTH = 64
MAX_DATES = 1_000
"""Date-times that one schedule may list."""
MAX_PERIOD_DAYS = 3_653
"""Longest time between two occurrences of a rate or an interval, and longest pause of `permanent`: ten years."""
MAX_JITTER_SECONDS = 86_400
"""Most that an occurrence may be delayed by its schedule's jitter."""
MAX_CATCH_UP_SECONDS = 2_592_000
"""Longest that a missed occurrence may still be run after its time: thirty days."""
MAX_OCCURRENCES = 1_000
"""Occurrences in one preview, or in one list of them."""
MAX_NOTE_LENGTH = 256
"""Characters of the reason why a schedule is paused."""
MAX_BACKFILL_PER_MINUTE = 6_000
"""Fastest pace of a backfill, in occurrences a minute."""
MAX_BACKFILLS = 5
"""Backfills of one schedule on their way at once; of those that have ended, a few are remembered."""
MAX_REMARKS = 20
"""Remarks that a schedule keeps of what did not run, and why."""
MAX_REMARK_LENGTH = 160
"""Characters of one of them."""
MAX_REVISION_ENDS = 20
"""Changes of a schedule, none of them about its timing, before each of which what was due may still wait to run."""
MISSED_AFTER = 10 * SECOND
"""An occurrence that is placed later than this after its time was missed, and is caught up if it may be."""
PERMANENT_CHECK_INTERVAL = 5 * MINUTE
"""How often a permanent schedule is checked, should the chain of its runs have broken."""
LONGEST_SLEEP = 7 * DAY
"""How often a schedule is checked whose next occurrence is far ahead: the rules of time zones change."""
OVERLAP_CHECK_INTERVAL = MINUTE
"""How often an occurrence checks that waits for the one before; it is placed as soon as that ends, all the same."""
MAX_CALENDARS = 8
"""Calendars that one schedule may name."""
MAX_CALENDAR_DATES = 5_000
"""Dates and spans of time in one calendar, those that its recurring events make included."""
MAX_CALENDAR_WINDOWS = 64
MAX_CALENDAR_BYTES = 1_048_576
"""An iCalendar file, in bytes."""
MAX_CALENDAR_RULES = 100
"""Recurring events in one iCalendar file."""
WORKING_MOMENT_HORIZON = 731 * DAY
"""How far ahead an occurrence may be moved to find a working moment: two years."""

MAX_NODES = 10_000
"""Nodes of one topology."""
MAX_EDGES = 50_000
"""Dependencies among the nodes of one topology; each is a write of its own."""
MAX_GRAPH_BYTES = 2_097_152
"""A graph's JSON, in bytes of UTF-8: an answer that shows it with where its nodes stand has to fit into the 6 MB of a
function's (Source: AWS Lambda quotas)."""
MAX_NODE_KEY_LENGTH = 128
MAX_EXPECTED_SECONDS = 2_592_000
"""Longest that a node may be expected to run: thirty days, as long as a target may take to notify."""
MAX_INPUTS_BYTES = 1_048_576
"""The results of its parents that a node is given, together, in bytes of UTF-8."""
EDGES_PER_CHUNK = 100
"""Dependencies of one node that are counted in one item: its numbers stay within one write unit."""
WAITS_AT_ONCE = 40
"""Nodes that one execution waits for: most iterations of an inline map at a time (Source: Step Functions Developer
Guide, Map state)."""
SHORTEST_CHECK_INTERVAL = 5 * MINUTE
"""A topology that runs is watched for the first time at this age, and then whenever it is a quarter older."""
LONGEST_CHECK_INTERVAL = HOUR
"""Longest time between two such checks."""
RERUN_PAUSE = MINUTE
"""How long a retried topology waits before it checks again whether the nodes of its last run have ended."""
NODE_MARGIN = 2 * DAY
"""How long nodes are kept beyond their topology's own task. TTL removes within two days (Source: DynamoDB Developer
Guide, "Using time to live"): whoever sees the topology sees its nodes, and a rerun of the last moment finds them."""
RUN_STATE_LIFE = 400 * DAY
"""How long it is kept how far a topology has come, from the last change of it once its run has ended."""
TOPOLOGY_MARGIN = 15 * MINUTE
"""How much longer than its `deadline_seconds` a topology may take to have what runs end, and to end itself."""

MAX_EVENT_AHEAD = 5 * MINUTE
"""An event that tasks are made of may be so much ahead of the clock: its sender's may differ."""
MAX_EVENT_NAME_LENGTH = 256
"""Characters of the id and the source of such an event."""
MAX_REASON_LENGTH = 1_000
"""What is kept of the reason why an event can become no task."""

MAX_SWITCHES = 100
"""Switches of a deployment: they lie in one item, which every worker reads."""
MAX_SWITCH_REASON_LENGTH = 128
SWITCHES_LIFE = 5 * SECOND
"""How long a process goes by the switches that it has read."""
SHORTEST_STOP = 30 * SECOND
"""What is stopped is checked again after this long at the least."""
LONGEST_STOP = 85 * SECOND
"""What is stopped is checked again after this long at the most: with `SWITCHES_LIFE`, within 90 seconds."""

SHORTEST_NOT_SENT_WAIT = SECOND
"""A task whose call never left, because what was to take it was throttled, is tried again after this at the least."""
LONGEST_NOT_SENT_WAIT = MINUTE
"""The same at the most: the wait grows with the time for which the task has been due."""

CIRCUIT_THRESHOLD = 5
"""So many calls of an owner to a host that fail in a row, as one process sees them, open their circuit."""
CIRCUIT_PATIENCE = 10 * SECOND
"""A call that was given less time than this, or than twice what its host usually takes to answer, and timed out, says
nothing of the host."""
CIRCUIT_OPEN = 30 * SECOND
"""How long a circuit is open at first; each time that the probe fails it is twice as long."""
CIRCUIT_LONGEST_OPEN = 10 * MINUTE
CIRCUIT_LIFE = 5 * SECOND
"""How long a process goes by what it has read of a host's circuit."""
CIRCUIT_SPREAD = 15 * SECOND
"""Tasks that a circuit postpones come again within this long after it: not all at once."""
CIRCUIT_FORGOTTEN = DAY
"""The circuit of a host that nobody has called for so long since it opened is removed."""
MAX_CIRCUITS_KNOWN = 1_000
"""Circuits that a process keeps in mind, one for each owner and host; one that it forgets is read again."""
MAX_HOST_LENGTH = 253
"""Characters of a host's name (Source: RFC 1035, 2.3.4, as text)."""

MAX_LEASES = 10
"""Tasks that one request of a pull worker leases: what SQS hands out at once (Source: SQS API Reference,
ReceiveMessage)."""
MAX_PULLED_TYPES = 10
"""Types that one request of a pull worker asks for."""
MAX_PULL_WAIT_SECONDS = 20
"""Longest that a request of a pull worker waits for tasks: what SQS waits (Source: SQS API Reference,
ReceiveMessage)."""
MIN_LEASE_SECONDS = 5
"""Shortest lease of a pull worker: a heartbeat every third of it must have time to travel."""
MAX_LEASE_SECONDS = 900
"""Longest lease of a pull worker: its loss is noticed after the lease."""
LEASE_SECONDS = 30
"""Lease of a pull worker that does not say how long."""
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
"""Characters of an error's message that the record keeps; the rest is cut, and said to be."""
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
"""Clocks may differ by this much before two leases could overlap; a lease is taken over only after it."""
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
"""What is passed on of an endpoint's answer to a query."""
QUERY_TIMEOUT = 10 * SECOND
"""How long an endpoint may take to answer a query."""
CALLBACK_TRIES = 3
"""How often a task's callback is tried; after that it is given up, and the outcome stands."""
CALLBACK_TIMEOUT = 5 * SECOND
"""How long one try of a callback may take."""
CALLBACK_PAUSE = SECOND
"""Wait between the first try of a callback and the second; it doubles."""
CALLBACK_MARGIN = 20 * SECOND
"""How much longer a worker may take to follow an outcome up, if there is a callback to be made."""
HANDLERS_RETRY = MINUTE
"""A package of handlers that cannot be imported is tried again after this long, and so are the tasks that need it."""
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
OWNER_SPREAD = 16
"""Partitions of one owner's list. A constant: changing it needs the index written again."""
