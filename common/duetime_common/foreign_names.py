"""Request field names of other schedulers and of early designs, and what they mean in duetime.

Hints in errors and the reference use these names. The API imports this module only when a request has an unknown field.

Sources: the design's own field list; Celery 5.4 "Calling Tasks" and "Tasks"; EventBridge Scheduler API Reference,
CreateSchedule; Temporal Python SDK 1.8 (`start_workflow`, `ScheduleSpec`, `RetryPolicy`); Airflow 2.10 (`DAG`,
`BaseOperator`); QStash API Reference, "Publish a Message" and "Create Schedule".
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BRACKETS = re.compile(r"\[.*\]$")


@frozen
class Meaning:
    """The meaning of a foreign name in duetime.

    Attributes:
        fields: equivalent fields, the most likely first; the path of a nested field contains a dot.
        text: the hint if none of these fields is allowed in the place of the foreign name.
    """

    fields: tuple[str, ...] = ()
    text: str = ""


def _is(*fields: str, text: str = "") -> Meaning:
    return Meaning(fields, text)


_RECURRING = "use `cron` or `rate` of a schedule (POST /v1/schedules)"
_DUE = _is("due_at", "start_at", "scheduled_at", text="use `due_at` or `delay_seconds` of the task")
_DELAY = _is("delay_seconds", text="use `delay_seconds` of the task")
_ATTEMPTS = _is("max_attempts", "retry.max_attempts", text="use `retry.max_attempts`")
_FIRST_PAUSE = _is("initial_seconds", "retry.initial_seconds", text="use `retry.initial_seconds`")
_LONGEST_PAUSE = _is("max_seconds", "retry.max_seconds", text="use `retry.max_seconds`")
_MULTIPLIER = _is("multiplier", "retry.multiplier", text="use `retry.multiplier`")
_RETRY = _is("retry", text="use `retry` of the task")
_PAYLOAD = _is("payload", "task.payload", text="use `payload` of the task")
_TYPE = _is("type", "task.type", text="use `type` of the task")
_TIMEOUT = _is(
    "timeout_seconds", "task.timeout_seconds", text="use `timeout_seconds` of the task, the limit of one attempt"
)
_EXPIRES = _is("expires_seconds", "task.expires_seconds", text="use `expires_seconds` of the task")
_CALLBACK = _is("callback_url", "task.callback_url", text="use `callback_url` of the task")
_FAILED = _is("notify_on", "task.notify_on", text="use `notify_on` of the task")
_TAGS = _is("tags", "task.tags", text="use `tags`")
_PRIORITY = _is("priority", "task.priority", text="use `priority` (high, normal or low); queues cannot be chosen")
_CRON = _is("cron", text=_RECURRING)
_ZONE = _is("timezone", text="use `timezone` of a schedule")
_OVERLAP = _is("overlap", text="use `overlap` of a schedule")
_CATCH_UP = _is("catch_up_seconds", text="use `catch_up_seconds` of a schedule")
_SPREAD = _is("jitter_seconds", "spread_seconds", text="use `jitter_seconds` of a schedule")
_PARENTS = _is("depends_on", text="use `depends_on` of a node of a topology (POST /v1/topologies)")
_AFTER = _is("after", text="use `after` of a task, or `depends_on` of a node of a topology (POST /v1/topologies)")
_UNIQUE = _is(
    "unique",
    text="use `unique` of the task for one task at a time, the header `Idempotency-Key` for repeated requests",
)
_KEY = _is(text="use the header `Idempotency-Key` for repeated requests; duetime generates the ids")
_RATE = _is("rate", "task.rate", text="use `rate` of the task")
_LOCK = _is("lock", "task.lock", text="use `lock` of the task, or a switch")
_HEARTBEAT = _is(text="not needed: leases are renewed automatically; `timeout_seconds` limits an attempt")
_RETRY_ON = _is(text="use `retry_on` of `@handler`")
_NO_RETRY_ON = _is(text="use `no_retry_on` of `@handler`, or raise `Unretriable` in the handler")
_KEPT = _is(text="set by the settings of the deployment, not per task")
_NAME = _is("name", text="use `name`")

FIRST_DESIGN: Mapping[str, Meaning] = {
    "max_retry": _ATTEMPTS,
    "important_level": _PRIORITY,
    "deadline_second": _TIMEOUT,
    "lock_timeout": _is(
        "wait_seconds",
        "lock.wait_seconds",
        text="use `lock.wait_seconds` for the wait; leases are renewed automatically",
    ),
    "control_task_id": _AFTER,
    "start_time": _DUE,
    "create_info": _TAGS,
    "process_arg": _PAYLOAD,
    "task_blob": _PAYLOAD,
    "task_name": _TYPE,
    "is_recurring": _is(text=_RECURRING),
    "user_id": _is(text="not needed: the owner is the authenticated caller"),
    "http_url": _is("url", "target.url", "task.target", text="use `target.url` of the task"),
}
CELERY: Mapping[str, Meaning] = {
    "countdown": _DELAY,
    "eta": _DUE,
    "expires": _EXPIRES,
    "max_retries": _ATTEMPTS,
    "default_retry_delay": _FIRST_PAUSE,
    "retry_backoff": _MULTIPLIER,
    "retry_backoff_max": _LONGEST_PAUSE,
    "retry_jitter": _is("retry", text="not needed: waits always have jitter"),
    "retry_policy": _RETRY,
    "autoretry_for": _RETRY_ON,
    "dont_autoretry_for": _NO_RETRY_ON,
    "throws": _NO_RETRY_ON,
    "time_limit": _TIMEOUT,
    "soft_time_limit": _TIMEOUT,
    "queue": _PRIORITY,
    "routing_key": _PRIORITY,
    "exchange": _PRIORITY,
    "args": _PAYLOAD,
    "kwargs": _PAYLOAD,
    "rate_limit": _RATE,
    "link": _CALLBACK,
    "link_error": _FAILED,
    "ignore_result": _KEPT,
    "acks_late": _is(text="not needed: a task is always acknowledged after its outcome"),
    "headers": _TAGS,
    "chain": _PARENTS,
    "chord": _PARENTS,
    "group_id": _PARENTS,
    "task_id": _KEY,
    "crontab": _CRON,
    "relative": _is(text="use `cron` of a schedule for intervals aligned with the clock, `rate` for others"),
}
EVENTBRIDGE_SCHEDULER: Mapping[str, Meaning] = {
    "ScheduleExpression": _is("cron", "rate", text=_RECURRING),
    "ScheduleExpressionTimezone": _ZONE,
    "FlexibleTimeWindow": _is("spread_seconds", text="use `spread_seconds` of a schedule"),
    "MaximumWindowInMinutes": _is("spread_seconds", text="use `spread_seconds` of a schedule"),
    "StartDate": _is("start_at", "due_at", text="use `start_at` of a schedule"),
    "EndDate": _is("end_at", text="use `end_at` of a schedule"),
    "ActionAfterCompletion": _is(
        text="not supported: an ended schedule stays until it is deleted; settings say how long a task is kept"
    ),
    "RetryPolicy": _RETRY,
    "MaximumRetryAttempts": _ATTEMPTS,
    "MaximumEventAgeInSeconds": _is(
        "max_duration_seconds",
        "retry.max_duration_seconds",
        "expires_seconds",
        text="use `retry.max_duration_seconds`",
    ),
    "DeadLetterConfig": _is(text="not needed: failed tasks are kept and listed (`state=failed`)"),
    "Input": _PAYLOAD,
    "Arn": _is("arn", "target.arn", "task.target"),
    "RoleArn": _is(text="not supported: targets are called with the role of the deployment"),
    "GroupName": _TAGS,
    "ClientToken": _KEY,
    "KmsKeyArn": _is(text="use the setting `kms_key_arn` of the deployment"),
}
TEMPORAL: Mapping[str, Meaning] = {
    "workflow_id": _UNIQUE,
    "workflow_type": _TYPE,
    "activity_type": _TYPE,
    "task_queue": _PRIORITY,
    "start_delay": _DELAY,
    "start_to_close_timeout": _TIMEOUT,
    "workflow_run_timeout": _TIMEOUT,
    "workflow_execution_timeout": _is(
        "max_duration_seconds",
        "retry.max_duration_seconds",
        text="use `retry.max_duration_seconds`, the limit of all attempts",
    ),
    "schedule_to_close_timeout": _is(
        "max_duration_seconds",
        "retry.max_duration_seconds",
        text="use `retry.max_duration_seconds`, the limit of all attempts",
    ),
    "schedule_to_start_timeout": _EXPIRES,
    "heartbeat_timeout": _HEARTBEAT,
    "initial_interval": _FIRST_PAUSE,
    "backoff_coefficient": _MULTIPLIER,
    "maximum_interval": _LONGEST_PAUSE,
    "maximum_attempts": _ATTEMPTS,
    "non_retryable_error_types": _NO_RETRY_ON,
    "cron_schedule": _CRON,
    "cron_expressions": _CRON,
    "time_zone_name": _ZONE,
    "jitter": _SPREAD,
    "overlap_policy": _OVERLAP,
    "catchup_window": _CATCH_UP,
    "remaining_actions": _is("remaining_runs", text="use `remaining_runs` of a schedule"),
    "memo": _TAGS,
    "search_attributes": _TAGS,
    "id_reuse_policy": _UNIQUE,
    "id_conflict_policy": _UNIQUE,
}
AIRFLOW: Mapping[str, Meaning] = {
    "dag_id": _NAME,
    "schedule": _CRON,
    "schedule_interval": _is("cron", "rate", text=_RECURRING),
    "timetable": _is("timings", text="use `timings` of a schedule"),
    "start_date": _is("start_at", "due_at", text="use `start_at` of a schedule"),
    "end_date": _is("end_at", text="use `end_at` of a schedule"),
    "catchup": _CATCH_UP,
    "max_active_runs": _OVERLAP,
    "max_active_tasks": _LOCK,
    "pool": _LOCK,
    "pool_slots": _LOCK,
    "execution_timeout": _TIMEOUT,
    "dagrun_timeout": _TIMEOUT,
    "retries": _ATTEMPTS,
    "retry_delay": _FIRST_PAUSE,
    "retry_exponential_backoff": _MULTIPLIER,
    "max_retry_delay": _LONGEST_PAUSE,
    "priority_weight": _PRIORITY,
    "upstream_task_ids": _AFTER,
    "depends_on_past": _OVERLAP,
    "on_failure_callback": _FAILED,
    "on_success_callback": _CALLBACK,
    "email_on_failure": _FAILED,
    "sla": _is("expect_success_by", "notify_on", text="use `notify_on` of the task"),
    "conf": _PAYLOAD,
    "params": _PAYLOAD,
    "op_kwargs": _PAYLOAD,
    "logical_date": _is(text="create a backfill for a past time (POST /v1/schedules/{name}/backfills)"),
    "execution_date": _is(text="create a backfill for a past time (POST /v1/schedules/{name}/backfills)"),
    "is_paused_upon_creation": _is(
        text="not supported: pause the schedule after its creation (POST /v1/schedules/{name}/pause)"
    ),
}
QSTASH: Mapping[str, Meaning] = {
    "Upstash-Delay": _DELAY,
    "Upstash-Not-Before": _DUE,
    "Upstash-Cron": _CRON,
    "Upstash-Retries": _ATTEMPTS,
    "Upstash-Retry-Delay": _FIRST_PAUSE,
    "Upstash-Timeout": _TIMEOUT,
    "Upstash-Callback": _CALLBACK,
    "Upstash-Failure-Callback": _FAILED,
    "Upstash-Method": _is("method", "target.method", "task.target", text="use `target.method` of the task"),
    "Upstash-Deduplication-Id": _UNIQUE,
    "Upstash-Content-Based-Deduplication": _UNIQUE,
    "Upstash-Schedule-Id": _NAME,
    "Upstash-Flow-Control-Key": _is("rate.key", "key", text="use `rate` of the task"),
    "Upstash-Flow-Control-Value": _is("rate.limit", "limit", text="use `rate` of the task"),
    "Upstash-Label": _TAGS,
    "destination": _is("url", "target.url", "task.target", text="use `target.url` of the task"),
    "not_before": _DUE,
    "failure_callback": _FAILED,
    "deduplication_id": _UNIQUE,
    "parallelism": _LOCK,
}
SYSTEMS: Mapping[str, Mapping[str, Meaning]] = {
    "First designs": FIRST_DESIGN,
    "Celery": CELERY,
    "EventBridge Scheduler": EVENTBRIDGE_SCHEDULER,
    "Temporal": TEMPORAL,
    "Airflow": AIRFLOW,
    "QStash": QSTASH,
}
"""Names that duetime does not use, grouped by system."""
_DUE_ALSO = _is("due_at", "start_at", "scheduled_at")
USUAL: Mapping[str, Meaning] = {
    **dict.fromkeys(("at", "run_at", "scheduled_for", "schedule_at", "when", "execute_at", "time"), _DUE_ALSO),
    **dict.fromkeys(("delay", "in", "delay_ms"), _is("delay_seconds")),
    **dict.fromkeys(("retry_count", "attempts", "max_tries"), _is("max_attempts", "retry.max_attempts")),
    **dict.fromkeys(("endpoint", "target_url", "uri"), _is("url", "target.url")),
    "url": _is("target.url"),
    "webhook": _is("callback_url", "url", "target.url"),
    **dict.fromkeys(("callback", "webhook_url", "notify_url"), _is("callback_url")),
    **dict.fromkeys(("page", "cursor", "offset", "page_token", "after_token", "next", "token"), _is("next_token")),
    **dict.fromkeys(("page_size", "per_page", "size", "max_results", "count", "max"), _is("limit")),
    **dict.fromkeys(("sort", "order_by", "sort_by", "direction"), _is("order")),
    **dict.fromkeys(("fields", "include", "select", "embed"), _is("expand")),
    **dict.fromkeys(("status", "phase"), _is("state")),
    **dict.fromkeys(("id", "task_id", "task_ids"), _is("ids")),
    **dict.fromkeys(("labels", "label", "metadata", "attributes"), _is("tags", "tag")),
    "tags": _is("tag"),
    "tag": _is("tags"),
    **dict.fromkeys(("body", "data", "message"), _is("payload")),
    **dict.fromkeys(("task", "task_type", "job", "job_type", "handler", "function"), _is("type")),
    **dict.fromkeys(("timeout", "timeout_ms"), _is("timeout_seconds")),
    **dict.fromkeys(("ttl", "expires_in", "expiry", "start_within_seconds"), _is("expires_seconds")),
    **dict.fromkeys(("fairness_key", "fair", "fairness", "tenant", "tenant_id"), _is("fair_key", "task.fair_key")),
    **dict.fromkeys(("fairness_weight", "weight"), _is("fair_weight", "task.fair_weight")),
    **dict.fromkeys(("deadline", "deadline_seconds"), _is("notify_within_seconds", "timeout_seconds")),
    **dict.fromkeys(("backoff", "initial_delay", "backoff_seconds"), _is("initial_seconds", "retry")),
    **dict.fromkeys(("max_delay", "max_backoff"), _is("max_seconds", "retry.max_seconds")),
    **dict.fromkeys(("tz", "zone", "time_zone"), _is("timezone")),
    **dict.fromkeys(("cron_expression", "expression"), _is("cron")),
    **dict.fromkeys(("every", "period"), _is("rate", "interval")),
    **dict.fromkeys(("note", "comment"), _is("reason")),
    **dict.fromkeys(("wait", "wait_for"), _is("wait_seconds")),
    **dict.fromkeys(("dependencies", "needs", "upstream", "parents"), _is("depends_on")),
    **dict.fromkeys(("error", "error_class"), _is("error_type")),
    **dict.fromkeys(("from", "since", "due_from"), _is("due_after", "scheduled_after")),
    **dict.fromkeys(("to", "until", "due_to"), _is("due_before", "scheduled_before")),
}
"""Common names that are not specific to one system. Each leads to a hint only if the request allows an equivalent
field."""


def plain_name(name: str) -> str:
    """Converts a name to lower case with underscores."""
    return _CAPITAL.sub("_", _BRACKETS.sub("", name)).replace("-", "_").lower()


def meanings_of(plain: str) -> Sequence[Meaning]:
    """The meanings of a name that `plain_name` returned, one for each system that uses the name."""
    return _by_plain_name().get(plain, ())


@cache
def _by_plain_name() -> Mapping[str, Sequence[Meaning]]:
    found: dict[str, list[Meaning]] = {}
    for names in (*SYSTEMS.values(), USUAL):
        for name, meaning in names.items():
            found.setdefault(plain_name(name), []).append(meaning)
    return found
