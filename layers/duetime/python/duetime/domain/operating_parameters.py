"""Intervals, leases, margins and sizes for duetime's own operation.

The docs list these values; no request is rejected because of them.
"""

from __future__ import annotations

from duetime.domain.times import DAY, HOUR, MINUTE, SECOND

BULK_INLINE = 1_200
"""How many milliseconds a request for many tasks processes tasks before it responds; a bulk operation processes the
rest."""
BULK_INLINE_NODES = 500
"""A topology with more nodes than this number is paused, resumed or cancelled by a bulk operation."""
CHILDREN_AT_ONCE = 100
"""Maximum number of a task's children that are read and cancelled at once."""
MOST_CHILDREN_CANCELLED = 500
"""A request responds after cancelling this many children, and must be repeated to cancel more children."""
MOST_CHILDREN_TIME = 10 * SECOND
"""How long a request that cancels a task's children looks for more children."""
BULK_STEP = 5 * SECOND
"""How long a bulk operation works before it stores its progress and checks whether it was cancelled."""
PURGE_PATIENCE = DAY
"""How long a purge waits for attempts that it has asked to stop."""
BULK_LEASE = 30 * SECOND
"""If a bulk operation has stored no progress for this long, another invocation continues it. This time is longer than a
step, and longer than the longest pause between tasks."""
BULK_INVOCATION = 12 * MINUTE
"""How long one invocation runs a bulk operation before another invocation continues it."""
CONTENT_OUTLIVES_RECORD = 7 * DAY
"""How much later than its record a payload, a result or an old attempt record expires, because DynamoDB removes expired
items within a few days, in any order (Source: DynamoDB Developer Guide, "Time to Live")."""
UNREFERENCED_CONTENT_LIFE = 90 * DAY
"""How long after the due time content expires if no record refers to it. Content is written before its record refers to
it, and writing the reference removes the expiry. Therefore, if a writer fails before writing the reference, its content
is still removed."""
UNREFERENCED_OBJECT_LIFE_DAYS = 400
"""`UNREFERENCED_CONTENT_LIFE` for S3 objects, in days since the write, because lifecycle rules cannot use the due
time."""
UPLOAD_LIFE = 15 * MINUTE
"""How long the signed URL of an upload, or of an uploaded payload, is valid."""
ABANDONED_UPLOAD_DAYS = 1
"""Number of days after which an upload is removed if no task was created with it."""
LOCK_CHECK_INTERVAL = 5 * MINUTE
"""A task that waits for a lock checks the lock at least this often. The task is also notified when the lock is
released."""
LOCK_LIFE = DAY
"""A lock is removed this long after its last use. The entry of a waiting task is removed this long after the latest
possible end of a hold."""
LONGEST_LOCK_HOLD = 31 * DAY
"""Longest hold of a lock after it was taken or renewed, because an asynchronous attempt can take
`MAX_DEADLINE_SECONDS`, and a topology `TOPOLOGY_MARGIN` longer."""
SHORTEST_ORDER_CHECK = 5 * MINUTE
"""How often the second task in an ordered key's line checks the line; tasks farther back check less often. A task is
also enqueued when its turn comes."""
LONGEST_ORDER_CHECK = HOUR
"""How often a task far back in its ordered key's line checks the line."""
ORDER_LINE_LIFE = 400 * DAY
"""The counter and the turn of an ordered key are removed this long after they were last written; the places of open
tasks are never removed."""
EXPECTATION_READS = 1_000
"""Maximum number of occurrences whose runs are read when a deadline of a schedule's expectation is checked. For a
frequent schedule, runs are also read earlier, each time half this number of occurrences has passed."""
MISSED_AFTER = 10 * SECOND
"""An occurrence that is detected later than this counts as missed; `catch_up_seconds` decides whether it runs."""
PERMANENT_CHECK_INTERVAL = 5 * MINUTE
"""How often a permanent schedule is checked, in case its chain of runs has broken."""
RULE_CHANGE_PATIENCE = DAY
"""How late an occurrence still runs, regardless of `catch_up_seconds`, if newer time zone rules moved it to a time
before its schedule's next timer. No zone has ever moved by more than a day."""
CHANGED_OCCURRENCE_LIFE = DAY
"""How long after an occurrence's time its schedule still stores that the occurrence was moved or skipped."""
LONGEST_SLEEP = 7 * DAY
"""How often a schedule with a distant next occurrence is checked, because time zone rules can change."""
CALENDAR_NOTICE = 30 * DAY
"""How long in advance the schedules that use a calendar report the calendar's `known_until`; each calendar is checked
once per `LONGEST_SLEEP`."""
OVERLAP_CHECK_INTERVAL = MINUTE
"""How often an occurrence that waits for the previous run checks that run. The occurrence is also notified when that
run ends."""
WORKING_MOMENT_HORIZON = 731 * DAY
"""How far ahead a time that no calendar excludes is searched for a moved occurrence: two years."""
MAX_ROLL_DAYS = 31
"""Maximum number of days by which `previous_day` and `next_day` of `on_excluded` move an occurrence."""
EDGES_PER_CHUNK = 100
"""Maximum number of a node's dependencies that one item counts, so that writing the item costs one write unit."""
EDGES_PER_GROUP = 4
"""Maximum number of a node's parents that read each other's records when they end, instead of writing to a counter. At
most three consistent reads cost less than a write."""
WAITS_AT_ONCE = 40
"""Maximum number of nodes that one execution waits for at a time (Source: Step Functions Developer Guide, inline Map
state)."""
SHORTEST_CHECK_INTERVAL = 5 * MINUTE
"""Age at which a running topology or job is first checked; it is checked again whenever its age has grown by a
quarter."""
LONGEST_CHECK_INTERVAL = HOUR
"""Longest time between two checks of a running topology."""
LONGEST_JOB_CHECK_INTERVAL = 30 * MINUTE
"""Longest time between two checks of a job in AWS, in case the event about the job's end was lost. ECS describes a
stopped task for only an hour (Source: ECS API Reference, DescribeTasks)."""
JOB_MARGIN = 15 * MINUTE
"""How long after its time limit a job may take to stop; the next attempt does not start earlier."""
JOB_STOP_CHECK = MINUTE
"""How long after a stop request a job is checked again."""
JOB_SEARCH = 2 * MINUTE
"""If a request to start a job got no response, how long to search for the job before starting it again or failing the
attempt."""
TOPOLOGY_RETRY_PAUSE = MINUTE
"""How long a retried topology waits before it checks again whether the nodes of its last run have ended."""
ROLLBACK_CHECK_PAUSE = 5 * SECOND
"""How long a sub-topology's rollback waits before it checks its nodes again."""
NODE_MARGIN = 2 * DAY
"""How much longer nodes are kept than their topology. TTL removes items within two days (Source: DynamoDB Developer
Guide, "Using time to live"), so a topology that can be read or retried has all its nodes."""
DEPENDENT_LIFE = 30 * DAY
"""How long a task is listed as a dependent of another task; each check, at least once a day, renews the entry."""
OUTCOME_REMEMBERED = 3 * DAY
"""A task that waits for other tasks stores their outcomes if their records expire sooner than this. The waiting task is
checked once a day."""
OCCURRENCE_PATIENCE = 5 * MINUTE
"""How long after an occurrence's due time other tasks keep waiting for the occurrence's task to be created."""
SOONEST_NEXT_LOOK = 15 * SECOND
"""Pause before a task that waits for a due occurrence looks again for that occurrence's task; later pauses grow with
the time since the due time."""
RUN_STATE_LIFE = 400 * DAY
"""How long the state of a topology's run is kept after its last change, once the run has ended."""
TOPOLOGY_MARGIN = 15 * MINUTE
"""How much longer than its `timeout_seconds` a topology can take to stop its running nodes and end."""
SWITCHES_LIFE = 5 * SECOND
"""How long a process caches the switches."""
REGION_LIFE = 5 * SECOND
"""How long a process of the active Region assumes that its Region is active before it reads the Region record again."""
REGION_TRUST = 30 * SECOND
"""How long a process assumes that its Region is active if the Region record cannot be read."""
REGION_OVERLAP = 15 * MINUTE
"""A takeover by another Region repeats the work of this period, because its writes may not have been replicated:
cursors are moved back by this time, and the follow-ups of tasks that ended within this time are run again."""
REGION_SETTLES = 10 * SECOND
"""How long a takeover waits after storing which Region is active, so that the other Region stops if replication
works."""
SWITCHES_TRUST = 60 * SECOND
"""How long a process uses cached switches if it cannot read them. The time is limited because an idle process may have
read the switches hours ago."""
TYPE_DEFAULTS_LIFE = 5 * SECOND
"""How long a process caches an owner's type defaults."""
TYPE_DEFAULTS_TRUST = 60 * SECOND
"""How long a process uses cached type defaults if it cannot read them."""
QUOTAS_LIFE = 5 * SECOND
"""How long a process caches the quotas that operators have set."""
INTAKE_KEPT = 4 * DAY
"""How long the intake's queue keeps an event, and for how long a repeated delivery of an event that cancels tasks is
recognized."""
EVENT_WAITER_KEPT = DAY
"""How long after its time limit a task is still listed among the tasks that wait for an event."""
INTAKE_RULES_LIFE = 10 * SECOND
"""How long a process caches intake rules. If the rules cannot be read after that time, events are redelivered."""
QUOTA_WINDOW = 5 * SECOND
"""Time over which a quota per second is averaged."""
QUOTA_USE_LIFE = SECOND
"""How long a process uses an owner's usage counts after reading them, and how often the process counts open tasks."""
QUOTA_COUNT_WAIT = 5 * SECOND
"""How long to wait before repeating a request that was rejected by a quota other than a per-second quota."""
QUOTA_COUNTS_KEPT = HOUR
"""How long a window's usage is stored, which is longer than the largest clock difference."""
QUOTA_DISPATCHES_PER_ATTEMPT = 5
"""Messages per second that the trigger lets arrive for each attempt that an owner may run at once. This number is
enough for attempts that take a fifth of a second."""
SHORTEST_QUOTA_WAIT = 4 * SECOND
"""How long a due task first waits if its owner already runs as many attempts as allowed; the wait doubles each time."""
LONGEST_QUOTA_WAIT = 2 * MINUTE
"""Longest wait of a due task whose owner already runs as many attempts as allowed."""
SHORTEST_STOP = 30 * SECOND
"""Shortest time until a task that is stopped by a switch is checked again."""
LONGEST_STOP = 85 * SECOND
"""Longest time until a task that is stopped by a switch is checked again; together with `SWITCHES_LIFE`, this is at
most 90 seconds."""
SHORTEST_NOT_SENT_WAIT = SECOND
"""Shortest wait of a task whose call was not sent because the receiving service was throttled."""
LONGEST_NOT_SENT_WAIT = MINUTE
"""Longest wait of a task whose call was not sent; the wait grows with the time since the due time."""
CIRCUIT_THRESHOLD = 5
"""Number of consecutive failed calls from one owner to a host, within one process, that opens the circuit."""
CIRCUIT_PATIENCE = 10 * SECOND
"""A call that times out does not count as a failure of the host if its timeout is shorter than this, or than twice the
host's usual response time."""
CIRCUIT_OPEN = 30 * SECOND
"""How long a circuit is open at first; the time doubles after each failed probe."""
CIRCUIT_LONGEST_OPEN = 10 * MINUTE
"""Longest time between a circuit's opening and the next probe."""
API_KEY_USE_PRECISION = HOUR
"""Precision of the stored time at which an API key was last used, because this time is written at most once per
period."""
API_KEY_KEPT = 30 * DAY
"""How long an API key is visible after its end."""
LINK_KEPT = 7 * DAY
"""How long a link is listed after its expiry."""
API_KEY_SESSION = 10 * MINUTE
"""How long a WebSocket connection lasts if it was opened with an API key. The time is limited because the key may be
revoked in the meantime."""
CIRCUIT_LIFE = 5 * SECOND
"""How long a process caches the state of a circuit."""
CIRCUIT_SPREAD = 15 * SECOND
"""Tasks that waited for a circuit are spread over this time after it closes, so that they do not all run at once."""
CIRCUIT_FORGOTTEN = DAY
"""A circuit is removed if its host was not called for this long after it opened."""
MAX_CIRCUITS_KNOWN = 1_000
"""Maximum number of circuits that a process caches, one per owner and host."""
MAX_CLOCK_DIFFERENCE = 5 * SECOND
"""Largest assumed difference between the clocks of two processes; a lease is taken over only this long after its
end."""
LATEST_ARRIVAL = MINUTE
"""A write that timed out can still take effect for this long after it was sent."""
DELETION_MARKER_LIFE = 7 * DAY
"""How long the deletion marker of a schedule or calendar is kept, so that a late write cannot restore it. This time is
much longer than any process runs and any write takes (`LATEST_ARRIVAL`)."""
DIRECT_SLACK = 30 * SECOND
"""Longest assumed delay with which the trigger reads a minute, including clock differences."""
CLOCK_TOLERANCE = DIRECT_SLACK
"""Largest accepted difference between the clocks of the trigger and the database; if the difference is larger, the
trigger does nothing. The database reports its time in whole seconds."""
MAX_DELAY = 900 * SECOND
"""Longest delay of an SQS message (Source: SQS quotas)."""
MAX_HOLD = 5 * SECOND
"""Longest time for which a worker holds a message until its due time. Messages that arrive earlier are returned to the
queue. Messages arrive up to two seconds early, plus the clock difference."""
EARLY_MESSAGE_RETURN = MINUTE
"""A message that arrives more than `MAX_HOLD` before its due time is redelivered after at most this time."""
MOST_SENT_IN_TIME = 100
"""Maximum number of messages in a slice that the trigger sends at individual times. If there are more messages, batches
are full, and the messages in a batch share one wait."""
SEND_STEP = 100
"""Messages whose best sending times are this close to each other are sent together."""
SHORTEST_WAIT_SENT_IN_TIME = 3 * SECOND
"""Messages that must arrive within this time are sent at once."""
FEWEST_WAITED_FOR = 2
"""The trigger does not wait until the planned time of fewer messages than this, because the trigger's waiting costs
twice as much as holding the messages in workers (`sizes`)."""
LATEST_SEND = 50
"""If a message is sent later than planned by more than this many milliseconds, its queue delay is recomputed, because a
shorter delay is needed."""
CLAIM_LEAD = 10
"""How many milliseconds before the due time a worker claims a task, so that the claim does not make the task late."""
SPAN_EXPORT_TIME = SECOND
"""How long an invocation may export spans at its end; spans that are not exported by then are dropped or left for a
later export."""
CALLBACK_ATTEMPTS = 60
"""Maximum number of attempts of a callback. The attempts take about a day in total, because waits average half of the
longest waits. If all attempts fail, the task's outcome does not change."""
CALLBACK_FIRST_WAIT = SECOND
"""Longest wait before the second attempt of a callback; the wait doubles with each attempt."""
CALLBACK_LONGEST_WAIT = HOUR
"""Longest wait between two attempts of a callback."""
CALLBACK_TIMEOUT = 10 * SECOND
"""Time limit of one attempt of a callback."""
GROUP_PARTS = 8
"""Number of partitions over which the members of a group are spread, because DynamoDB writes at most 1,000 items per
second to one partition."""
GROUP_CHECK_FIRST = 2 * SECOND
"""Shortest interval at which a closed group's completion task checks whether members are open. Usually the end of the
last member wakes the task; the checks find members whose end was not recorded because a process crashed."""
GROUP_CHECK_LONGEST = 5 * MINUTE
"""Longest interval between checks of a closed group. The longer a group has been closed, the less often it is
checked."""
GROUP_MEMBER_LOST = 3 * MINUTE
"""How long a member's creation or reopening may take after the member's item was written; if the record is missing or
ended after that, the process has crashed."""
GROUP_CHECKED = 10
"""Maximum number of a group's open members whose records are read at once to find unrecorded ends."""
GROUP_WAKE_TRIES = 5
"""Maximum number of attempts to wake a group's completion task while a worker is checking it."""
GROUP_WAKE_PAUSE = 200
"""Wait between two attempts to wake a group's completion task, in milliseconds."""
NOTICE_TRIES = 3
"""Maximum number of attempts to send a notice; if all attempts fail, the task is not affected."""
NOTICE_TIMEOUT = 5 * SECOND
"""Time limit of one attempt to send a notice."""
NOTICE_PAUSE = SECOND
"""Wait before the second attempt to send a notice; the wait doubles with each attempt."""
NOTICE_MARGIN = 20 * SECOND
"""Additional time that a worker gets after an outcome to send a notice."""
CONTENT_RETRY = 30 * SECOND
"""How long a task whose payload could not be read waits before it is started again."""
HANDLERS_RETRY = MINUTE
"""How long tasks wait before the failed import of their handlers package is retried."""
OVERDUE_GRACE = SECOND
"""How long after its deadline an attempt may end by itself before its process is terminated."""
FUNCTION_END_MARGIN = 10 * SECOND
"""An outcome's follow-ups start only if they can end at least this long before the function's time limit; otherwise,
another invocation runs them."""
PROCESS_END_TIME = 3 * SECOND
"""How long a terminating process may take to store the state of its unfinished attempts."""
HEARTBEATS_PER_LEASE = 3
"""How many times a lease is renewed before it would end; an attempt that cannot renew its lease is terminated with its
process."""
LEASE_RETURN_MARGIN = MAX_CLOCK_DIFFERENCE + SECOND
"""A message whose task is leased becomes visible again this long after the end of the lease."""
MAX_UNACKNOWLEDGED_LEASES = 3
"""Number of a task's consecutive leases that may end without a response from a pull worker. Additional leases of this
kind count as attempts, because the task may be crashing its workers."""
FENCES_PER_EPOCH = 1_000_000_000
"""A fence is `epoch * FENCES_PER_EPOCH + claims`. The epoch rises when a table is restored, so the fences of attempts
from the lost table are lower than all other fences."""
TIMER_LIFE = 400 * DAY
"""A timer is removed this long after its minute. The trigger and its last recovery scan must have read the timer by
then, so no timer is lost if an outage of the trigger is shorter than this."""
RECOVERY_SCAN_DELAYS = (2 * MINUTE, HOUR, DAY)
"""How long after a minute's end each recovery scan reads the minute again."""
RESCAN_PATIENCE = 15 * MINUTE
"""How long after a task's due time the first recovery scan keeps checking, about every two minutes, a task that has not
started."""
RECOVERY_SCAN_BACKLOG = 1_000
"""A recovery scan does not send messages to a queue that has more messages than this, so that it does not enlarge a
backlog."""
EARLY_SCAN_AGES = (10 * SECOND, 75 * SECOND)
"""Each tick also looks for tasks that are overdue by a time in this range; if the queue is short, their messages have
probably been lost. Ticks are a minute apart, so each overdue task is found."""
EARLY_SCAN_BACKLOG = 100
"""If a queue has more messages than this, tasks that have not started are assumed to wait there."""
EARLY_SCAN_PAGES = 4
"""Number of pages of each shard's minute that the early scan reads; items on later pages are left to the recovery
scans."""
TICK_BUDGET = 50 * SECOND
"""How long one invocation of the trigger reads before the next invocation continues the reading."""
GROUP_HOLD = 70 * SECOND
"""How long a lease on a group of shards lasts if it is not renewed."""
LONGEST_HOLD = GROUP_HOLD + MINUTE
"""A lease on a group of shards that ends later than this was written with a wrong clock and is ignored."""
LONGEST_ROUND = 150 * SECOND
"""Additional time that an invocation needs to process each open minute once; the function's time limit includes this
time."""
CURSOR_SAVE_INTERVAL = 10 * SECOND
"""How often the trigger saves its cursors while reading; after a crash, it continues from the saved cursors."""
MINUTE_PAGE = 250
"""Number of items in one page of a shard's minute. The trigger has at most one page of each shard in memory."""
SLICE = 500
"""Number of a minute's items that are processed before processing of the next open minute continues."""
LONGEST_PASSING = 5 * SECOND
"""How long the items of other queues are skipped before processing of the next open minute continues."""
OPEN_MINUTES = 4
"""Number of minutes that are read concurrently, so that a slow minute does not delay later minutes."""
LARGE_MINUTE = 5_000
"""Maximum number of messages of one queue in one minute. A queue that has more messages than this, or more than a tick
can send, is processed separately, so that other queues do not wait for it."""
SHARDS_SETTLE = HOUR
"""A new number of shards is first used for reproducible ids this long after its announcement; by then, every process
has read the number."""
SHARDS_KNOWN = 10 * MINUTE
"""How long a process caches the number of shards for reproducible ids."""
ON_TIME = SECOND
"""An attempt that starts at most this long after its planned start counts as on time. If an attempt starts later than
this, the record also contains when its message was sent and received."""
LATE_EVENT_AFTER = MINUTE
"""A first attempt that starts at least this late is reported by an event."""
SUMMARY_STEPS_KEPT = 3 * DAY
"""How long the step that counts a write in the summary is stored after the write, because a stream may redeliver the
write for a day."""
SUMMARY_SPANS = (MINUTE, 10 * SECOND, SECOND)
"""Time spans for which the summary's steps are stored in one item. First, all steps of a minute share an item, so that
one transaction counts an entire delivery. When that item is full, additional steps are stored in one item per ten
seconds, and then in one item per second. Items are kept small because each write costs the item's entire size."""
SUMMARY_STEPS_TOGETHER = 250
"""Number of steps, of 8 bytes each, at which an item is full; an item for a second is never considered full."""
SUMMARY_TYPES_AT_ONCE = 90
"""Maximum number of task types whose counts are written at once, because a transaction can have 100 items (Source:
DynamoDB API Reference)."""
SUMMARY_PAGES = 10
"""Maximum number of one-megabyte pages that are read from one part of an owner's counts, which is enough for about
40,000 task types."""
SUMMARY_GAP = 20 * HOUR
"""If a change is counted this long after it was made, or if no process has read changes for this long, changes may have
been lost, because the table's stream keeps them for only a day. In this case, counting starts over."""
SUMMARY_SEEN_EVERY = HOUR
"""Shortest interval between two writes of the time at which changes were last read."""
SUMMARY_RESTART_DELAY = 2 * MINUTE
"""How long a new generation of counts is stored before it starts, so that every process knows it in time, and how long
after the generation's start the first recount starts."""
SUMMARY_KNOWN = MINUTE
"""How long a process caches the generation of the counts."""
SUMMARY_ENDED_KEPT = DAY
"""How long a generation of counts is kept after its end, which is longer than any process can still use the
generation."""
SUMMARY_OWNERS_AT_ONCE = 100
"""Maximum number of owners whose ended counts are given a TTL in one run of the recount."""
SUMMARY_RECOUNT_EVERY = 5 * MINUTE
"""Interval at which the next part of the table is read while older tasks are recounted."""
SUMMARY_RECOUNT_RUN = 30 * SECOND
"""Longest time that reading one part of the table may take."""
SUMMARY_RECOUNT_LEASE = 15 * MINUTE
"""After this time, which is longer than an invocation may run, the process that counts a part is considered dead."""
SUMMARY_RECOUNT_AGAIN = 6 * HOUR
"""Shortest interval between two recounts; the interval doubles with each recount."""
SUMMARY_RECOUNT_AT_LEAST = 30 * DAY
"""Longest interval between two recounts."""
SUMMARY_RECOUNT_KEPT = 60 * DAY
"""How long a recount's counts are used if no later recount completes."""
OWNER_SPREAD = 4
"""Number of partitions of an owner's list, each for a thousand new tasks per second (Source: DynamoDB Developer Guide,
"Best practices for designing and using partition keys"); a page of the list queries all partitions. This value must not
change, because a different value would require rewriting the index."""
LIST_FROM = 256
"""Lists by state, type, name, tag and more are maintained once one partition of an owner's list has this many tasks.
The owner then has about a thousand tasks in total, as many as one page reads."""
LIST_EXAMINED = 4_000
"""Maximum number of tasks that are read for a list ordered by end if an owner has no lists. An owner without lists has
fewer tasks than this."""
LIST_BLOCK = 45
"""Maximum number of postings in one item of a list. Each posting has 18 bytes, so the item and its key cost one write
unit."""
LIST_SPAN = 5 * SECOND
"""Longest time between the postings of one item. With a longer time, fewer write units are needed if the stream is read
in longer batches, but more items must be read for a page of a busy list, because items overlap."""
LIST_KEPT = 100 * DAY
"""How long a posting is kept beyond the retention of a task that ends at the time in its id. A task that ends more than
half of this time after the time in its id is listed again; a task that is open for longer than this is found only by
its state."""
LIST_LATE = 5 * SECOND
"""A task that is still scheduled this long after the time in its id is considered late, and is listed as scheduled from
then on."""
LIST_SWEEP_EVERY = 10 * SECOND
"""Shortest interval between two searches for an owner's late tasks."""
LIST_SWEEP_TASKS = 1_000
"""Maximum number of tasks that one search for late tasks reads."""
LIST_KNOWN = 30 * SECOND
"""How long a process caches the fact that an owner has no lists."""
LIST_BUILD_DELAY = MINUTE
"""Tasks that existed before an owner's lists were started are added to the lists this long after the start. By then,
every process has checked again whether the lists exist, and adds changed tasks to them."""
LIST_BUILD_TASKS = 2_000
"""Maximum number of existing tasks added to lists with one batch of changes."""


MAX_STARTS_PER_RATE_PART = 250
"""Number of starts per second that one item counts. Faster rates are divided among several items. DynamoDB allows 1,000
writes per second to one item (Source: DynamoDB Developer Guide, "Designing partition keys"); the other writes are
reserved for tasks that join a line."""
RATE_SLACK = 200
"""Longest time between the grant of a start and the start, in milliseconds; for a short window, at most a twentieth of
the window."""
RATE_HOLD = SECOND
"""How long a worker waits if the rate will allow a start soon; tasks with later starts are returned to the queue."""
RATE_LATE_COMER = 30 * SECOND
"""A task that is checked this long after its turn takes a new place in line if it cannot start at once."""
RATE_BUSY_WAIT = 5 * SECOND
"""Longest additional wait, after the first second, of a task whose rate could not be read, or was not read soon
enough."""
BACKLOG_WITHOUT_ESTIMATE = 1_000
"""If this many messages wait in a queue, no start time is predicted, because the workers' speed is unknown."""
RATE_LIFE = 7 * DAY
"""A part of a rate is removed this long after its last use."""
