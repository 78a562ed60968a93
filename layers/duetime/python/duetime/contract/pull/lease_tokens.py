"""Lease ids: opaque to workers, and valid for one lease.

An id grants nothing: its caller must be allowed to pull its type, and the fence is checked. A truncated or changed id
does not exist.
"""

from __future__ import annotations

import base64
import binascii
import json
import re

from duetime.domain.errors import LeaseNotFound
from duetime.domain.ids import InvalidTaskId, TaskId
from duetime.domain.limits import MAX_LEASE_SECONDS, MAX_LEASE_TOKEN_LENGTH, MAX_TYPE_LENGTH, MIN_LEASE_SECONDS
from duetime.domain.tasks.pull_leases import LeaseKey
from duetime.domain.times import SECOND

TOKEN_PATTERN = f"^[A-Za-z0-9_-]{{1,{MAX_LEASE_TOKEN_LENGTH}}}$"
_TOKEN = re.compile(TOKEN_PATTERN.strip("^$"))
_RECEIPT = re.compile(r"[!-~]{1,1500}")
_VERSION = 1
_MOST_DIGITS = 12
"""Maximum number of digits of a fence; ids with larger numbers are invalid."""


def token_of(key: LeaseKey) -> str:
    """The id of a lease."""
    fields = [_VERSION, key.task_id.text, key.fence, key.pull_queue, key.length // SECOND, key.receipt]
    text = json.dumps(fields, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def key_of(token: str) -> LeaseKey:
    """The lease with an id.

    Raises:
        LeaseNotFound: the id is invalid.
    """
    match _decoded(token):
        case [1, str(task_id), int(fence), str(pull_queue), int(seconds), str(receipt)]:
            fits = 0 < fence < 10**_MOST_DIGITS and MIN_LEASE_SECONDS <= seconds <= MAX_LEASE_SECONDS
            if fits and len(pull_queue) <= MAX_TYPE_LENGTH and _RECEIPT.fullmatch(receipt):
                return LeaseKey(_task_id(task_id), int(fence), pull_queue, seconds * SECOND, receipt)
    raise LeaseNotFound


def _decoded(token: str) -> object:
    if _TOKEN.fullmatch(token) is None:
        raise LeaseNotFound
    try:
        return json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        raise LeaseNotFound from None


def _task_id(text: str) -> TaskId:
    try:
        return TaskId.parse(text)
    except InvalidTaskId:
        raise LeaseNotFound from None
