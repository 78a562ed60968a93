"""Every limit of duetime, written down once: the API refuses by them, the docs and the OpenAPI page show them."""

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

MAX_TYPE_LENGTH = 64
MAX_NAME_LENGTH = 128
MAX_OWNER_LENGTH = 128
MAX_URL_LENGTH = 2_048
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
MAX_TIMEOUT_SECONDS = 840
"""Longest run of one attempt: Lambda's fifteen minutes less the time to hold, claim and finish."""

MAX_DEADLINE_SECONDS = 2_592_000
"""Longest that a target which has only accepted the work may take to notify: thirty days."""
MAX_WAIT_SECONDS = 25
"""Longest that a request to create a task waits for its end: API Gateway waits thirty seconds."""
MAX_CHECKPOINT_BYTES = 4_096
"""JSON that a paused attempt may leave for the one that goes on."""

MAX_ERROR_CLASS_LENGTH = 64
MAX_ERROR_MESSAGE_LENGTH = 256
"""Characters of an error's message that the record keeps; the rest is cut, and said to be."""
MAX_PROGRESS_MESSAGE_LENGTH = 64
LEDGER_LINES_INLINE = 5
"""Attempts whose ledger lines the record itself keeps; older lines move to an item of their own."""

INLINE_CONTENT_BYTES = 512
"""A compressed payload or result up to this size lies in the record, which must stay under 1 KB."""
ITEM_CONTENT_BYTES = 200_000
"""A compressed payload or result up to this size lies in an item of its own; a larger one in S3."""

MAX_CLOCK_DIFFERENCE = 5 * SECOND
"""Clocks may differ by this much before two leases could overlap; a lease is taken over only after it."""
DIRECT_SLACK = 30 * SECOND
"""How much later than its look-ahead the trigger may have read a minute, clocks and slowness included."""
MAX_DELAY = 900 * SECOND
"""Longest delay of an SQS message (Source: SQS quotas)."""
MAX_HOLD = 5 * SECOND
"""Longest that a worker holds a message for its due time; a message further ahead goes back to the queue.
A message comes up to two seconds early, and by a clock that is behind it seems earlier still."""
CLAIM_LEAD = 10
"""A worker claims this long before the due time, so that the claim's own time makes nothing late."""
OVERDUE_GRACE = SECOND
"""How long after its deadline an attempt may still end by itself before its process is ended."""
HEARTBEATS_PER_LEASE = 3
"""A lease is renewed so many times in its length; as many failures in a row end the attempt."""
LEASE_RETURN_MARGIN = MAX_CLOCK_DIFFERENCE + SECOND
"""A message whose task is leased comes back this long after the lease's end."""

WAKE_LIFE = 3 * DAY
"""A wake is removed this long after its minute; the last patrol has been by then."""
PATROL_DELAYS = (2 * MINUTE, HOUR, DAY)
"""How long after its end a minute is read again."""
PATROL_BACKLOG = 1_000
"""A patrol waits while a queue it would send to has more messages than this, so a backlog does not feed itself."""
TICK_BUDGET = 50 * SECOND
"""How long one invocation of the trigger reads on; the next one goes on where it stopped."""
GROUP_HOLD = 70 * SECOND
"""How long a group of shards is held for reading without a renewal."""
CURSOR_SAVE_INTERVAL = 10 * SECOND
"""How often the cursors are saved during a long catch-up."""
OWNER_SPREAD = 16
"""Partitions of one owner's list. A constant: changing it needs the index written anew."""
