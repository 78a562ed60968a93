"""Types of request fields with their limits, formats and descriptions."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from duetime.contract.http.timestamps import instant_of
from duetime.domain.ids import InvalidTaskId, TaskId
from duetime.domain.limits import (
    MAX_ACTION_REASON_LENGTH,
    MAX_DEADLINE_SECONDS,
    MAX_DUE_AHEAD,
    MAX_ENCRYPTED_TEXT_LENGTH,
    MAX_ERROR_MESSAGE_LENGTH,
    MAX_ERROR_TYPE_LENGTH,
    MAX_EXPIRES_SECONDS,
    MAX_FAIR_KEY_LENGTH,
    MAX_FAIR_WEIGHT,
    MAX_GROUP_ID_LENGTH,
    MAX_LOCK_HOLDERS,
    MAX_LOCK_KEY_LENGTH,
    MAX_LOCK_WAIT_SECONDS,
    MAX_NAME_LENGTH,
    MAX_OWNER_LENGTH,
    MAX_PROGRESS_MESSAGE_LENGTH,
    MAX_PULLED_TIMEOUT_SECONDS,
    MAX_RATE_LIMIT,
    MAX_RATE_SECONDS,
    MAX_RETRY_DURATION_SECONDS,
    MAX_TAG_KEY_LENGTH,
    MAX_TAG_VALUE_LENGTH,
    MAX_TAGS,
    MAX_TIMEOUT_SECONDS,
    MAX_TYPE_LENGTH,
    MAX_UNIQUE_KEY_LENGTH,
)
from duetime.domain.tasks.task_options import Priority
from duetime.domain.times import SECOND, Millis
from duetime_common.payload_codecs import ENCRYPTED_TEXT

TYPE_PATTERN = rf"^[A-Za-z0-9_][A-Za-z0-9_.:/-]{{0,{MAX_TYPE_LENGTH - 1}}}$"
TAG_KEY_PATTERN = rf"^[A-Za-z0-9_][A-Za-z0-9_./-]{{0,{MAX_TAG_KEY_LENGTH - 1}}}$"


def printable(text: str) -> str:
    """Rejects control characters."""
    # Printable text contains no control characters, and checking for printable text is fast.
    if not text.isprintable() and any(letter < " " or "\x7f" <= letter < "\xa0" for letter in text):
        raise ValueError("contains a control character")
    return text


def each_once(items: list[str]) -> list[str]:
    """Rejects duplicates in a list."""
    if len(set(items)) != len(items):
        raise ValueError("names something more than once")
    return items


# Owners contain visible ASCII characters except `#`, which separates an owner from the rest of a key.
OWNER_PATTERN = rf'[!"$-~]{{1,{MAX_OWNER_LENGTH}}}'
OWNER_RULE = f"should be 1 to {MAX_OWNER_LENGTH} visible ASCII characters without #"
TIME_SCHEMA: dict[str, Any] = {
    "type": "string",
    "format": "date-time",
    "description": "RFC 3339 with an offset; fractions of a millisecond are rounded up.",
    "examples": ["2026-12-01T09:00:00.250+09:00"],
}
LOCK_KEY_PATTERN = rf"^[A-Za-z0-9_][A-Za-z0-9_.:-]{{0,{MAX_LOCK_KEY_LENGTH - 1}}}$"
SCHEDULE_NAME_PATTERN = rf"^[A-Za-z0-9_][A-Za-z0-9_.:-]{{0,{MAX_NAME_LENGTH - 1}}}$"
ScheduleName = Annotated[str, Field(pattern=SCHEDULE_NAME_PATTERN)]
LockKey = Annotated[
    str, Field(pattern=LOCK_KEY_PATTERN, description="Name of the lock, among the owner's locks.", examples=["db-17"])
]
OrderedKey = Annotated[
    str,
    Field(
        pattern=rf"^[!-~]{{1,{MAX_UNIQUE_KEY_LENGTH}}}$",
        description="The ordered key, scoped to the owner.",
        examples=["customer-17"],
    ),
]
MaxHolders = Annotated[
    int,
    Field(
        ge=1,
        le=MAX_LOCK_HOLDERS,
        description="Maximum number of simultaneous holders, as set by the task that requests the lock. "
        f"The default is 1, and {MAX_LOCK_HOLDERS} for a shared lock.",
    ),
]
TaskType = Annotated[
    str,
    Field(
        pattern=TYPE_PATTERN,
        description="Type of the task: the name of a Python handler, or of a kind of work.",
        examples=["report"],
    ),
]
TaskName = Annotated[
    str,
    Field(max_length=MAX_NAME_LENGTH, description="Human-readable name, which need not be unique."),
    AfterValidator(printable),
]
Reason = Annotated[
    str,
    Field(
        max_length=MAX_ACTION_REASON_LENGTH,
        description="Human-readable reason for the action, which is recorded with the action and shown in the task's "
        "events.",
        examples=["the warehouse is closed"],
    ),
    AfterValidator(printable),
]
"""The reason for an action; empty if there is none."""
WantedName = Annotated[TaskName, Field(min_length=1)]
"""The name in a filter. An empty name is rejected, because it is probably an unset variable."""
WantedErrorText = Annotated[str, Field(min_length=1, max_length=MAX_ERROR_MESSAGE_LENGTH), AfterValidator(printable)]
"""A part of an error message, as used in a filter."""
TagKey = Annotated[str, Field(pattern=TAG_KEY_PATTERN)]
TagValue = Annotated[str, Field(max_length=MAX_TAG_VALUE_LENGTH), AfterValidator(printable)]
Tags = Annotated[
    dict[TagKey, TagValue],
    Field(
        max_length=MAX_TAGS,
        description="Labels by which tasks can be found.",
        examples=[{"team": "dba"}],
        json_schema_extra={"additionalProperties": False},
    ),
]
TaskPriority = Annotated[
    Priority,
    # JSON has no enumerations, so only the exact text of a member's value is accepted.
    Field(
        strict=False,
        description=(
            "Determines the order of tasks that are due at the same time; no task runs early because of its priority."
        ),
    ),
]
At = Annotated[Millis | None, BeforeValidator(instant_of), WithJsonSchema(TIME_SCHEMA)]
Moment = Annotated[Millis, BeforeValidator(instant_of), WithJsonSchema(TIME_SCHEMA)]
DelaySeconds = Annotated[
    float,
    Field(
        ge=0,
        le=MAX_DUE_AHEAD / SECOND,
        description="Seconds from now until the task is due; fractions are allowed.",
        examples=[90],
    ),
]
TimeoutSeconds = Annotated[
    int,
    Field(
        ge=1,
        le=MAX_PULLED_TIMEOUT_SECONDS,
        description="Time limit of one attempt in seconds, for `prepare` and `run` together. More than "
        f"{MAX_TIMEOUT_SECONDS} is for pull workers only.",
    ),
]
NotifyWithinSeconds = Annotated[
    int,
    Field(
        ge=1,
        le=MAX_DEADLINE_SECONDS,
        description="Time limit of an asynchronous attempt in seconds; an attempt that reports no outcome in time "
        "fails.",
    ),
]
ExpiresSeconds = Annotated[
    int,
    Field(
        ge=1,
        le=MAX_EXPIRES_SECONDS,
        description="How many seconds after the due time the first attempt can still start; after that time, the task "
        "fails with the error `Expired` without calling the target. Null for no limit.",
        examples=[600],
    ),
]
FairKey = Annotated[
    str,
    Field(
        pattern=rf"^[!-~]{{1,{MAX_FAIR_KEY_LENGTH}}}$",
        description="Key for sharing workers fairly: when more tasks are due than workers are free, a key with many "
        "tasks does not delay other keys. The key is not a limit. Null for no key; all tasks without a key share one "
        "key.",
        examples=["customer-17"],
    ),
]
FairWeight = Annotated[
    int,
    Field(
        ge=1,
        le=MAX_FAIR_WEIGHT,
        description="When several keys have many tasks, a key with weight 3 starts about three times as many tasks as "
        "a key with weight 1. The weight has no effect without a `fair_key`.",
    ),
]
MaxDurationSeconds = Annotated[
    int,
    Field(
        ge=1,
        le=MAX_RETRY_DURATION_SECONDS,
        description="Another attempt can start only within this many seconds of the start of the first attempt, or "
        "of a user's retry; a running attempt is not stopped. Null for no limit.",
    ),
]
LockWaitSeconds = Annotated[
    int,
    Field(
        ge=1,
        le=MAX_LOCK_WAIT_SECONDS,
        description=(
            "How many seconds each attempt can wait for the lock, counted from the attempt's first wait for any of "
            "the task's locks; after that time, the task fails with the error `LockWaitExpired`. Null for no limit."
        ),
    ),
]
RateKey = Annotated[
    str, Field(pattern=LOCK_KEY_PATTERN, description="Name of the rate, among the owner's rates.", examples=["crm"])
]
RateLimit = Annotated[
    int,
    Field(ge=1, le=MAX_RATE_LIMIT, description="Attempts that can start in `per_seconds`.", examples=[50]),
]
RateSeconds = Annotated[int, Field(ge=1, le=MAX_RATE_SECONDS, description="Length of the window, in seconds.")]
RateBurst = Annotated[
    int,
    Field(
        ge=0,
        le=MAX_RATE_LIMIT,
        description="Additional attempts that can start at once after a period below the limit. In any window of "
        "`per_seconds`, at most `limit` + `burst` attempts start.",
    ),
]
RollbackOnFailure = Annotated[
    bool,
    Field(description="Whether the target's `rollback`, if any, is called when the task fails for good."),
]
Fence = Annotated[int, Field(ge=1, description="Fence of the attempt; unique among the task's attempts.")]
Percent = Annotated[int, Field(ge=0, le=100, description="Progress of the work in percent.", examples=[40])]
_ENCRYPTED_PART = MAX_ENCRYPTED_TEXT_LENGTH - len(ENCRYPTED_TEXT)
PROGRESS_MESSAGE_PATTERN = (
    rf"^(.{{0,{MAX_PROGRESS_MESSAGE_LENGTH}}}|{re.escape(ENCRYPTED_TEXT)}[A-Za-z0-9+/=]{{0,{_ENCRYPTED_PART}}})$"
)
ProgressMessage = Annotated[
    str,
    Field(
        pattern=PROGRESS_MESSAGE_PATTERN,
        description=f"A short text about the progress: at most {MAX_PROGRESS_MESSAGE_LENGTH} characters, or "
        f"{MAX_ENCRYPTED_TEXT_LENGTH} if encrypted by a codec.",
    ),
    AfterValidator(printable),
]
ErrorType = Annotated[
    str,
    Field(
        min_length=1, max_length=MAX_ERROR_TYPE_LENGTH, description="Type of the error, such as the name of its class."
    ),
    AfterValidator(printable),
]
ErrorMessage = Annotated[
    str,
    Field(
        description=f"What happened; truncated after {MAX_ERROR_MESSAGE_LENGTH} characters, or "
        f"{MAX_ENCRYPTED_TEXT_LENGTH} if encrypted."
    ),
]


def _task_id(text: str) -> str:
    try:
        return TaskId.parse(text.upper() if text.isascii() else text).text
    except InvalidTaskId:
        raise ValueError("should be a task id") from None


GROUP_ID_PATTERN = rf"^[A-Za-z0-9_][A-Za-z0-9_.:-]{{0,{MAX_GROUP_ID_LENGTH - 1}}}$"
GroupId = Annotated[
    str,
    Field(pattern=GROUP_ID_PATTERN, description="Id of the group, among the owner's groups.", examples=["import-17"]),
]
DependencyId = Annotated[str, AfterValidator(_task_id), Field(description="The id of a task, in uppercase.")]
ParentTaskId = Annotated[
    str,
    AfterValidator(_task_id),
    Field(
        description="The task that starts this task. Both tasks must have the same owner. Lists and cancellations can "
        "follow the reference. A handler's `context.client` sets this field.",
        examples=["01KB8Z4QYJ0000GH3V5TZK7M2P"],
    ),
]
"""The id of a task, in uppercase."""
AllowUnknownType = Annotated[
    bool,
    Field(description="Whether to accept a type without a known handler, for a handler that a later deployment adds."),
]
