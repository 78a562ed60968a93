"""How duetime itself works: intervals, leases, margins and sizes. The docs show them; they reject no request."""

from __future__ import annotations

from duetime.domain.times import DAY, HOUR, MINUTE, SECOND

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
CONTENT_OUTLIVES_RECORD = 7 * DAY
"""How much later than its record a payload, a result or an old attempt record expires: DynamoDB removes expired items
within a few days, in any order (Source: DynamoDB Developer Guide, "Time to Live")."""
UNREFERENCED_CONTENT_LIFE = 90 * DAY
"""Content that is written before its record refers to it expires this long after the task is due, until the reference
is written and removes the expiry: content is not leaked if its writer fails in between."""
UNREFERENCED_OBJECT_LIFE_DAYS = 400
"""The same for an object in S3, in days since it was written: a lifecycle rule does not know the due time."""
LOCK_CHECK_INTERVAL = 5 * MINUTE
"""How often a task that waits for a lock checks it; it also gets the lock as soon as that is released."""
LOCK_LIFE = DAY
"""A lock is removed this long after its last use, and a waiting entry this long after its lock can be held at most."""
LONGEST_LOCK_HOLD = 31 * DAY
"""Longest time for which a lock is held after it was taken or renewed: an asynchronous attempt can take
`MAX_DEADLINE_SECONDS`, and a topology `TOPOLOGY_MARGIN` longer."""
EXPECTATION_READS = 1_000
"""Occurrences whose runs are read at most at a deadline of what is expected of a schedule. Of a frequent schedule they
are also read before that, each time half as many have come."""
MISSED_AFTER = 10 * SECOND
"""An occurrence that is found later than this after its time was missed; `catch_up_seconds` decides whether it runs."""
PERMANENT_CHECK_INTERVAL = 5 * MINUTE
"""How often a permanent schedule is checked, in case the chain of its runs has broken."""
RULE_CHANGE_PATIENCE = DAY
"""How late an occurrence still runs that newer time zone rules moved before the timer of its schedule, whatever
`catch_up_seconds` is: no zone has moved by more than a day."""
CHANGED_OCCURRENCE_LIFE = DAY
"""How long after its time a schedule remembers that one of its occurrences was moved or skipped."""
LONGEST_SLEEP = 7 * DAY
"""How often a schedule is checked whose next occurrence is far ahead: the rules of time zones change."""
CALENDAR_NOTICE = 30 * DAY
"""How long before a calendar's `known_until` its schedules report it; each is checked once in `LONGEST_SLEEP`."""
OVERLAP_CHECK_INTERVAL = MINUTE
"""How often an occurrence that waits for the previous run checks it; it also runs as soon as that one ends."""
WORKING_MOMENT_HORIZON = 731 * DAY
"""How far an occurrence can be moved to a time that no calendar excludes: two years."""
MAX_ROLL_DAYS = 31
"""By how many days an occurrence is rolled at most, with `previous_day` or `next_day` as its `on_excluded`."""
EDGES_PER_CHUNK = 100
"""Dependencies of one node that are counted in one item: its numbers stay within one write unit."""
EDGES_PER_GROUP = 4
"""Parents of one node whose records each of them reads when it ends, instead of writing that it has: three consistent
reads at most, which cost less than a write."""
WAITS_AT_ONCE = 40
"""Nodes that one execution waits for at a time (Source: Step Functions Developer Guide, inline Map state)."""
SHORTEST_CHECK_INTERVAL = 5 * MINUTE
"""Age at which a running topology or job is checked first; each further check is when it is a quarter older."""
LONGEST_CHECK_INTERVAL = HOUR
"""Longest time between two such checks."""
LONGEST_JOB_CHECK_INTERVAL = 30 * MINUTE
"""The same for a job that AWS runs, in case the event of its end was lost: ECS describes a stopped task for an hour
(Source: ECS API Reference, DescribeTasks)."""
JOB_MARGIN = 15 * MINUTE
"""How long after its time limit a job may take to stop; its next attempt does not begin before."""
JOB_STOP_CHECK = MINUTE
"""How long after it was told to stop a job is checked again."""
JOB_SEARCH = 2 * MINUTE
"""For how long a job is looked for whose start got no response, before it is started again or given up."""
TOPOLOGY_RETRY_PAUSE = MINUTE
"""How long a retried topology waits before it checks again whether the nodes of its last run have ended."""
ROLLBACK_CHECK_PAUSE = 5 * SECOND
"""How long the rollback of a topology within another waits before it checks its nodes again."""
NODE_MARGIN = 2 * DAY
"""How much longer than their topology nodes are kept. TTL removes items within two days (Source: DynamoDB Developer
Guide, "Using time to live"), so a topology that can still be read or retried has all its nodes."""
RUN_STATE_LIFE = 400 * DAY
"""How long the state of a topology's run is kept, from its last change after the run has ended."""
TOPOLOGY_MARGIN = 15 * MINUTE
"""How much longer than its `timeout_seconds` a topology can take to stop its running nodes and to end."""
SWITCHES_LIFE = 5 * SECOND
"""How long a process caches the switches."""
SWITCHES_TRUST = 60 * SECOND
"""How long a process goes by switches that it cannot read again: one that was idle may have read them hours ago."""
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
"""How long a circuit is open at most before the next probe."""
CIRCUIT_LIFE = 5 * SECOND
"""How long a process caches the state of a circuit."""
CIRCUIT_SPREAD = 15 * SECOND
"""Tasks that waited for a circuit are spread over this time after it closes, so that they do not run all at once."""
CIRCUIT_FORGOTTEN = DAY
"""The circuit of a host that has not been called for this long since it opened is removed."""
MAX_CIRCUITS_KNOWN = 1_000
"""Circuits that a process caches, one for each owner and host."""
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
EARLY_MESSAGE_RETURN = MINUTE
"""A message that is returned because it came earlier than that is delivered again after this time at the latest."""
MOST_SENT_IN_TIME = 100
"""Messages of a slice that the trigger sends each at its best moment; of more, batches are full and share their
wait."""
SEND_STEP = 100
"""Messages whose best moments are this close to each other are sent together."""
SHORTEST_WAIT_SENT_IN_TIME = 3 * SECOND
"""A message that has to be there sooner is sent at once."""
FEWEST_WAITED_FOR = 2
"""The trigger does not wait to send fewer messages than this in time: it costs twice as much as the worker that would
hold them (their `sizes`)."""
LATEST_SEND = 50
"""So much later than planned a message may be sent without its delay being computed anew: that would be a second
less."""
CLAIM_LEAD = 10
"""How many milliseconds before the due time a worker claims a task, so that the claim does not make it late."""
SPAN_EXPORT_TIME = SECOND
"""How long an invocation may take at its end to export its spans; what is not exported by then is dropped or waits."""
CALLBACK_ATTEMPTS = 60
"""Attempts of a callback: with waits of half the longest on average, they take a day. The outcome does not change if
all of them fail."""
CALLBACK_FIRST_WAIT = SECOND
"""Longest wait before the second attempt of a callback; it doubles for each further attempt."""
CALLBACK_LONGEST_WAIT = HOUR
"""Longest wait between two attempts of a callback."""
CALLBACK_TIMEOUT = 10 * SECOND
"""Time limit of one attempt of a callback."""
NOTICE_TRIES = 3
"""Attempts to send a notice; the task does not change if all of them fail."""
NOTICE_TIMEOUT = 5 * SECOND
"""Time limit of one attempt to send a notice."""
NOTICE_PAUSE = SECOND
"""Wait before the second attempt to send a notice; it doubles for each further attempt."""
NOTICE_MARGIN = 20 * SECOND
"""Additional time of a worker after an outcome, if there is a notice to send."""
HANDLERS_RETRY = MINUTE
"""How long until the import of a failed handlers package is tried again, for the tasks that need it."""
OVERDUE_GRACE = SECOND
"""How long after its deadline an attempt may still end by itself before its process is ended."""
FUNCTION_END_MARGIN = 10 * SECOND
"""Work that follows an outcome is started only if it can end this long before the function's own time limit;
otherwise another invocation does it."""
PROCESS_END_TIME = 3 * SECOND
"""How long a process that must end may take to store the state of its unfinished attempts."""
HEARTBEATS_PER_LEASE = 3
"""Renewals during the length of one lease; an attempt that cannot renew its lease is ended with its process."""
LEASE_RETURN_MARGIN = MAX_CLOCK_DIFFERENCE + SECOND
"""A message whose task is leased becomes visible again this long after the end of the lease."""
MAX_UNACKNOWLEDGED_LEASES = 3
"""Leases of a task in a row that end without a sign of their pull workers and are no attempts; further ones count: it
may be the task that ends its workers."""
TIMER_LIFE = 400 * DAY
"""A timer is removed this long after its minute. The trigger and its last recovery scan must have read it by then:
this is the longest outage of the trigger that loses nothing."""
RECOVERY_SCAN_DELAYS = (2 * MINUTE, HOUR, DAY)
"""How long after its end a minute is read again."""
RESCAN_PATIENCE = 15 * MINUTE
"""How long after its due time a task that has not started is met repeatedly by the first recovery scan, each time after
as long again. A task that runs is met about every two minutes, for as long as it runs."""
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
ON_TIME = SECOND
"""An attempt that starts at most this long after its planned start is counted as on time. For a later one, the record
also has the times at which its message was sent and received."""
LATE_EVENT_AFTER = MINUTE
"""How long after its due time a task's first attempt starts, at least, for an event to tell of it."""
SUMMARY_STEPS_KEPT = 3 * DAY
"""How long after a write its step in the summary's counts is remembered: a stream may deliver it again for a day."""
SUMMARY_SPANS = (MINUTE, 10 * SECOND, SECOND)
"""Steps of the summary's counts whose writes were made in the same minute are remembered in one item, so that a
transaction counts all of a delivery. What comes when that item is full is remembered by ten seconds, then by a second:
items stay small, because each write of one costs its whole size."""
SUMMARY_STEPS_TOGETHER = 250
"""With so many steps, of 8 bytes each, an item of them is full; that of a second never is."""
SUMMARY_TYPES_AT_ONCE = 90
"""Types of tasks whose counts are written at once: a transaction takes 100 items (Source: DynamoDB API Reference)."""
SUMMARY_PAGES = 10
"""Pages of a megabyte that are read of one part of an owner's counts: some 40 000 types of tasks."""
SUMMARY_GAP = 20 * HOUR
"""A change that is counted this long after it was made, or as long a time without anybody who reads changes, means that
changes may have been lost: the table's stream forgets after a day. The counts then begin anew."""
SUMMARY_SEEN_EVERY = HOUR
"""How often it is stored, at most, that changes are read."""
SUMMARY_RESTART_DELAY = 2 * MINUTE
"""How long before a new generation of counts begins it is stored, so that every process knows of it by then; and how
long after that the first recount starts."""
SUMMARY_KNOWN = MINUTE
"""How long a process caches the generation of the counts."""
SUMMARY_ENDED_KEPT = DAY
"""How long after its end a generation of counts is kept: longer than a process that knows of no later one uses it."""
SUMMARY_OWNERS_AT_ONCE = 100
"""Owners whose counts of ended generations are given a TTL in one run of the recount."""
SUMMARY_RECOUNT_EVERY = 5 * MINUTE
"""How often a part of the table is read while older tasks are recounted."""
SUMMARY_RECOUNT_RUN = 30 * SECOND
"""How long one part is read, at most."""
SUMMARY_RECOUNT_LEASE = 15 * MINUTE
"""After this, whoever counts a part is taken for dead: longer than an invocation may last."""
SUMMARY_RECOUNT_AGAIN = 6 * HOUR
"""Shortest time between two recounts. It doubles with each one."""
SUMMARY_RECOUNT_AT_LEAST = 30 * DAY
"""Longest time between two recounts."""
SUMMARY_RECOUNT_KEPT = 60 * DAY
"""How long the counts of a recount are used, if no later one comes."""
OWNER_SPREAD = 16
"""Partitions of the list of one owner. A constant: another value requires the index to be rewritten."""


MAX_STARTS_PER_RATE_PART = 250
"""Starts a second that one item counts: a rate that allows more is divided among several items. DynamoDB takes 1,000
writes a second of one item (Source: DynamoDB Developer Guide, "Designing partition keys"); the rest is for tasks that
take a place in line."""
RATE_SLACK = 200
"""How long an attempt may begin after its start was granted, at most; one in twenty parts of a short window."""
RATE_HOLD = SECOND
"""How long a worker waits for the start of a task whose rate allows it so soon; later ones are put back."""
RATE_LATE_COMER = 30 * SECOND
"""A task that comes so long after its turn takes a new place, if it cannot start at once."""
RATE_BUSY_WAIT = 5 * SECOND
"""How much longer than a second, at most, a task waits whose rate could not be asked, or only with too much delay."""
RATE_LIFE = 7 * DAY
"""A part of a rate is removed this long after nothing depends on it any more."""
