"""Request and response limits that the client also applies; all other limits are in `duetime.domain.limits`."""

from __future__ import annotations

MAX_BODY_BYTES = 5_242_880
"""Size of a request body, in bytes. API Gateway passes on 10 MB, Lambda accepts 6 MB (Source: AWS Lambda quotas)."""
MAX_PAYLOAD_BYTES = 1_048_576
"""Size of a payload's JSON, in bytes of UTF-8, or of a binary payload; an uploaded payload can be larger."""
MAX_UPLOAD_BYTES = 5_000_000
"""Size of an uploaded payload, in bytes: its text form must fit into one Lambda invocation of 6 MB (Source: AWS Lambda
quotas)."""
MAX_UPLOAD_ID_LENGTH = 64
"""Characters of an upload's id."""
MAX_JSON_DEPTH = 64
"""Levels of nesting in a request's JSON."""
MAX_RESULT_BYTES = 262_144
"""Size of a result's JSON, in bytes of UTF-8; a larger result fails the attempt."""
MAX_BATCH = 100
"""Tasks in one `POST /v1/tasks/batch`, and ids in one `GET /v1/tasks?ids=`."""
MAX_PAGE = 100
"""Tasks on one page of a list."""
MAX_CHECKPOINT_BYTES = 4_096
"""Size of an attempt's checkpoint, in bytes of JSON."""
MAX_STEPS = 100
"""Steps of one phase of a task's handler, as in `context.step`."""
MAX_STEP_NAME_LENGTH = 64
MAX_STEP_RESULT_BYTES = 32_768
"""Size of a step's result, in bytes of JSON. The results of all steps fit into one response."""
MAX_NODES = 10_000
"""Nodes of one topology, including nodes of its sub-topologies."""
MAX_EDGES = 50_000
"""Dependencies among the nodes of one topology; each is a separate write."""
MAX_NODE_KEY_LENGTH = 128
MAX_CONDITION_LENGTH = 1_000
"""Length of a condition on a node or a signal."""
MAX_ERROR_MESSAGE_LENGTH = 256
"""Characters of a stored error message; a longer message is truncated."""
MAX_ERROR_TYPE_LENGTH = 64
MAX_TRACEBACK_LENGTH = 4_000
"""Characters at the end of a stored traceback, or fewer if they do not compress to `MAX_TRACEBACK_BYTES`."""
MAX_PROGRESS_MESSAGE_LENGTH = 64
MAX_ENCRYPTED_TEXT_LENGTH = 512
"""Characters of a stored error or progress message that a codec has encrypted."""
MAX_HANDLER_BATCH = 1_000
"""Largest `max_size` of a batch handler, and of an HTTP target's `batch`."""
MAX_HANDLER_BATCH_WAIT_SECONDS = 60
"""Largest `max_wait_seconds` of a batch."""
DEFAULT_BATCH_SIZE = 100
"""Default `max_size` of a batch."""
DEFAULT_BATCH_WAIT_SECONDS = 1.0
"""Default `max_wait_seconds` of a batch."""
MAX_RETRY_WAIT_SECONDS = 86_400
"""Longest wait between two attempts in a retry policy, and longest wait that a handler can request."""
