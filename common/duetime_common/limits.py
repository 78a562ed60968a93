"""Request and response limits that the client also applies; all other limits are in `duetime.domain.limits`."""

from __future__ import annotations

MAX_BODY_BYTES = 5_242_880
"""Maximum size of a request body, in bytes. API Gateway passes on up to 10 MB, but Lambda accepts only 6 MB (Source:
AWS Lambda quotas)."""
MAX_PAYLOAD_BYTES = 1_048_576
"""Maximum size of a binary payload or of a payload's JSON in UTF-8, in bytes. An uploaded payload can be larger."""
MAX_UPLOAD_BYTES = 5_000_000
"""Maximum size of an uploaded payload, in bytes. The payload's text form must fit into one Lambda invocation of 6 MB
(Source: AWS Lambda quotas)."""
MAX_UPLOAD_ID_LENGTH = 64
"""Maximum length of an upload's id, in characters."""
MAX_JSON_DEPTH = 64
"""Maximum number of nesting levels in a request's JSON."""
MAX_RESULT_BYTES = 262_144
"""Maximum size of a result's JSON in UTF-8, in bytes. A larger result fails the attempt."""
MAX_BATCH = 100
"""Maximum number of tasks in one `POST /v1/tasks/batch`, or ids in one `GET /v1/tasks?ids=`."""
MAX_PAGE = 100
"""Maximum number of tasks on one page of a list."""
MAX_CHECKPOINT_BYTES = 4_096
"""Maximum size of an attempt's checkpoint, in bytes of JSON."""
MAX_STEPS = 100
"""Maximum number of steps (`context.step`) in one phase of a task's handler."""
MAX_STEP_NAME_LENGTH = 64
MAX_STEP_RESULT_BYTES = 32_768
"""Maximum size of a step's result, in bytes of JSON. The results of all steps fit into one response."""
MAX_NODES = 10_000
"""Maximum number of nodes in one topology, including the nodes of its sub-topologies."""
MAX_EDGES = 50_000
"""Maximum number of dependencies among the nodes of one topology. If a node has many parents, each of its dependencies
is a separate write."""
MAX_NODE_KEY_LENGTH = 128
MAX_CONDITION_LENGTH = 1_000
"""Maximum length of a condition on a node or a signal, in characters."""
MAX_ERROR_MESSAGE_LENGTH = 256
"""Maximum length of a stored error message, in characters. A longer message is truncated."""
MAX_ERROR_TYPE_LENGTH = 64
MAX_TRACEBACK_LENGTH = 4_000
"""Maximum length of a stored traceback, in characters. Only the end of a longer traceback is stored; the end is
shortened until it compresses to `MAX_TRACEBACK_BYTES`."""
MAX_PROGRESS_MESSAGE_LENGTH = 64
MAX_ENCRYPTED_TEXT_LENGTH = 512
"""Maximum length of a stored error or progress message that a codec has encrypted, in characters."""
MAX_HANDLER_BATCH = 1_000
"""Largest `max_size` of a batch handler or an HTTP target's `batch`."""
MAX_HANDLER_BATCH_WAIT_SECONDS = 60
"""Largest `max_wait_seconds` of a batch."""
DEFAULT_BATCH_SIZE = 100
"""Default `max_size` of a batch."""
DEFAULT_BATCH_WAIT_SECONDS = 1.0
"""Default `max_wait_seconds` of a batch."""
MAX_RETRY_WAIT_SECONDS = 86_400
"""Longest wait between two attempts in seconds, whether set in a retry policy or requested by a handler."""
