"""Celery's options and their counterparts in duetime.

Source: Celery 5.6: "Tasks", "Calling Tasks", "Periodic Tasks", "Configuration and defaults", and the code of
`celery.app.task`, `celery.app.autoretry` and `celery.app.defaults`. The import's report and the documentation's page
about migrating from Celery show these texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

NONE = "none"
_QUEUE = "none: queues cannot be chosen; `priority` orders tasks, and a pull worker leases the types that it names"
_BROKER = "none: duetime manages its messages itself"
_ALWAYS = "always so"
_WORKER = "none: Lambda runs the handlers; for a pull worker, `Worker(concurrency=…)`"
_RESULT = "none: the result is part of the task, kept for `retention_days`"
_JSON = "none: payloads and results are JSON"
_EVENTS = "none: every change is an event that can be watched"
_LATE = "always so: a task is done when its handler has ended; a lost worker's task runs again"
_EXPIRES = "`expires_seconds` of a task or of `@handler`: seconds, not a date"
_TIME_LIMIT = "`timeout_seconds`, at most 840; longer in a pull worker, or when the handler defers its outcome"

TASK_OPTIONS: Mapping[str, str] = {
    "name": 'the type: `@handler("NAME")`',
    "bind": "always so: the first argument is the `context`",
    "base": "`@handler` on a class; common code is a function or a base class that you write",
    "max_retries": "`retry.max_attempts`, one more than the retries; `None` (for ever): at most 100",
    "default_retry_delay": "`retry.initial_seconds` with `multiplier: 1`; Celery waits 180 s",
    "autoretry_for": "`@handler(retry_on=(…))`; without it every exception is retried, where Celery retries none",
    "dont_autoretry_for": "`@handler(no_retry_on=(…))`",
    "retry_kwargs": "`retry`; `countdown` is `initial_seconds`, `max_retries` is `max_attempts` less one",
    "retry_backoff": "`retry.multiplier: 2`, `initial_seconds` the number (1 for `True`); without it waits are equal",
    "retry_backoff_max": "`retry.max_seconds`; Celery's default is 600",
    "retry_jitter": "always so: full jitter, as Celery's default with `retry_backoff`; waits without jitter: `RetryIn`",
    "rate_limit": "`rate`; over all workers, where Celery counts in each",
    "time_limit": _TIME_LIMIT,
    "soft_time_limit": "`@soft_timeout(280)` below `@handler`, which raises `SoftTimeout`",
    "ignore_result": _RESULT,
    "store_errors_even_if_ignored": "always so: errors are stored with each attempt",
    "store_eager_result": NONE,
    "acks_late": _LATE,
    "acks_on_failure_or_timeout": "always so: a failure is retried by `retry`, not by the queue",
    "acks_on_failure": "always so: a failure is retried by `retry`, not by the queue",
    "acks_on_timeout": "always so: a timeout is retried by `retry`, not by the queue",
    "reject_on_worker_lost": _LATE,
    "track_started": "always so: the state `running`",
    "send_events": _EVENTS,
    "trail": "children of a task know their parent",
    "serializer": _JSON,
    "compression": "always so, where it saves something",
    "backend": _RESULT,
    "typing": "`@handler(payload=Model)` checks the payload",
    "pydantic": "`@handler(payload=Model)`",
    "priority": "`priority`: high, normal or low",
    "queue": _QUEUE,
    "routing_key": _QUEUE,
    "exchange": _QUEUE,
    "expires": _EXPIRES,
    "throws": "`no_retry_on`: expected errors fail without retries",
    "resultrepr_maxsize": NONE,
    "shared": NONE,
    "lazy": NONE,
    "on_failure": "`notify_on`, `callback_url`, or a node with `trigger_rule: one_failed`",
    "on_success": "`callback_url`, or a node that depends on the task",
    "on_retry": "live updates of the task",
    "after_return": "`callback_url`",
    "before_start": "a line at the start of the handler",
}
"""Options of `@app.task` and `@shared_task`."""

CALL_OPTIONS: Mapping[str, str] = {
    "args": "`payload`: one JSON value",
    "kwargs": "`payload`: one JSON value",
    "countdown": "`delay_seconds`",
    "eta": "`due_at`",
    "expires": _EXPIRES,
    "task_id": "the idempotency key; duetime generates the ids",
    "retry": "always so: the client retries a request that got no response",
    "retry_policy": "none: the client has its own retry policy, up to its `timeout`",
    "priority": "`priority`: high, normal or low",
    "queue": _QUEUE,
    "exchange": _QUEUE,
    "routing_key": _QUEUE,
    "delivery_mode": "always so: tasks are stored durably",
    "time_limit": _TIME_LIMIT,
    "soft_time_limit": "`with soft_timeout(280):` in the handler",
    "link": "a topology: a node that depends on the task",
    "link_error": "`notify_on`, `callback_url`, or a node with `trigger_rule: one_failed`",
    "chord": "a topology",
    "chain": "a topology",
    "group_id": "a topology, or a tag",
    "shadow": "`name`",
    "headers": "`tags`, or a part of the payload",
    "ignore_result": _RESULT,
    "serializer": _JSON,
    "compression": "always so, where it saves something",
    "add_to_parent": "children of a task know their parent",
    "reply_to": "`callback_url`",
    "producer": _BROKER,
    "connection": _BROKER,
    "publisher": _BROKER,
    "immediate": NONE,
    "mandatory": NONE,
}
"""Options of `apply_async`, `signature` and `send_task`."""

ENTRY_KEYS: Mapping[str, str] = {
    "task": "`task.type`",
    "schedule": "`cron` for `crontab(…)`, `rate` for a `timedelta` or a number",
    "args": "`task.payload`",
    "kwargs": "`task.payload`",
    "options": "as those of `apply_async`",
    "relative": "`start_at`: a rate is counted from it",
}
"""Keys of an entry of `beat_schedule`."""

SETTINGS: Mapping[str, str] = {
    "beat_schedule": "the manifest of schedules",
    "beat_scheduler": "none: schedules are in the table",
    "beat_schedule_filename": "none: schedules are in the table",
    "beat_sync_every": "none: schedules are in the table",
    "beat_max_loop_interval": "none: the trigger runs automatically",
    "beat_cron_starting_deadline": "`catch_up_seconds` of a schedule",
    "timezone": "`timezone` of each schedule",
    "enable_utc": "always so: times are stored in UTC",
    "imports": "the package of handlers",
    "include": "the package of handlers",
    "accept_content": _JSON,
    "result_accept_content": _JSON,
    "task_acks_late": _LATE,
    "task_acks_on_failure_or_timeout": "always so: a failure is retried by `retry`, not by the queue",
    "task_acks_on_failure": "always so: a failure is retried by `retry`, not by the queue",
    "task_acks_on_timeout": "always so: a timeout is retried by `retry`, not by the queue",
    "task_reject_on_worker_lost": _LATE,
    "task_always_eager": "in tests: the testing kit",
    "task_eager_propagates": "in tests: the testing kit",
    "task_store_eager_result": NONE,
    "task_annotations": "the keywords of each `@handler`",
    "task_compression": "always so, where it saves something",
    "task_default_rate_limit": "`rate` of each `@handler`; over all workers",
    "task_default_priority": "`priority` of each `@handler`",
    "task_inherit_parent_priority": "none: give the child its `priority`",
    "task_queue_max_priority": "none: there are three priorities",
    "task_time_limit": _TIME_LIMIT,
    "task_soft_time_limit": "`@soft_timeout(280)` below each `@handler`",
    "task_ignore_result": _RESULT,
    "task_store_errors_even_if_ignored": "always so: errors are stored with each attempt",
    "task_track_started": "always so: the state `running`",
    "task_send_sent_event": _EVENTS,
    "task_remote_tracebacks": "always so: tracebacks are in the logs of the attempt",
    "task_publish_retry": "always so: the client retries a request that got no response",
    "task_publish_retry_policy": "none: the client has its own retry policy, up to its `timeout`",
    "task_serializer": _JSON,
    "task_protocol": _BROKER,
    "task_routes": _QUEUE,
    "task_queues": _QUEUE,
    "task_default_queue": _QUEUE,
    "task_default_queue_type": _QUEUE,
    "task_default_exchange": _QUEUE,
    "task_default_exchange_type": _QUEUE,
    "task_default_routing_key": _QUEUE,
    "task_default_delivery_mode": "always so: tasks are stored durably",
    "task_create_missing_queues": _QUEUE,
    "task_create_missing_queue_type": _QUEUE,
    "task_create_missing_queue_exchange_type": _QUEUE,
    "task_allow_error_cb_on_chord_header": "`trigger_rule` of a node",
    "result_backend": _RESULT,
    "result_expires": "`retention_days` of the deployment",
    "result_extended": "always so: a task keeps its payload, its attempts and its result",
    "result_persistent": "always so: tasks are stored durably",
    "result_serializer": _JSON,
    "result_compression": "always so, where it saves something",
    "result_cache_max": _RESULT,
    "result_exchange": _RESULT,
    "result_exchange_type": _RESULT,
    "result_chord_retry_interval": "none: a node starts when its parents have ended",
    "result_chord_join_timeout": "none: a node starts when its parents have ended",
    "worker_concurrency": _WORKER,
    "worker_pool": _WORKER,
    "worker_autoscaler": _WORKER,
    "worker_prefetch_multiplier": _WORKER,
    "worker_disable_prefetch": _WORKER,
    "worker_max_tasks_per_child": _WORKER,
    "worker_max_memory_per_child": _WORKER,
    "worker_lost_wait": "the lease of a task, after which it runs again",
    "worker_eta_task_limit": "none: tasks that are due later wait in the table",
    "worker_disable_rate_limits": "a `rate` always applies",
    "worker_deduplicate_successful_tasks": "always so: a task that has succeeded does not run again",
    "worker_cancel_long_running_tasks_on_connection_loss": _LATE,
    "worker_soft_shutdown_timeout": "a stopped pull worker lets its tasks end",
    "worker_enable_soft_shutdown_on_idle": "a stopped pull worker lets its tasks end",
    "worker_enable_remote_control": "the API: cancel, switches, `duetime worker`",
    "worker_send_task_events": _EVENTS,
    "worker_state_db": "none: cancelled tasks are in the table",
}
"""Settings for running tasks. Settings for brokers and result backends have no counterpart."""
SETTING_PREFIXES = (
    *("broker_", "redis_", "cache_", "cassandra_", "s3_", "azureblockblob_", "gcs_", "control_", "couchbase_"),
    *("arangodb_", "mongodb_", "cosmosdbsql_", "event_", "elasticsearch_", "security_", "database_", "result_"),
    *("task_", "worker_", "beat_"),
)
"""Prefixes of Celery settings without a counterpart, for settings that are not listed above."""
