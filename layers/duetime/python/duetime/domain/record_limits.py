"""How much the records keep: what is more is truncated, dropped or stored elsewhere, and rejects no request."""

from __future__ import annotations

MAX_REMARKS = 20
"""Entries in the `skipped_runs` of a schedule."""
MAX_REMARK_LENGTH = 160
"""Characters of the reason in such an entry."""
MAX_REVISION_ENDS = 200
"""Earlier definitions of a schedule with the same timing that are told apart, of those that had an occurrence."""
MAX_STOPPED_OCCURRENCES = 1_000
"""Occurrences that their user stopped before a change of their schedule, and that no later change brings back."""
MAX_WAIT_REASON_LENGTH = 80
"""Characters of the stored reason why a task waits."""
MAX_RECORDED_WAITS = 6
"""Stored waits of a task: the latest ones and the first one for its lock, each with when it began."""
MAX_RECORDED_WAIT_LENGTH = 40
"""Characters of the stored reason of such a wait."""
ATTEMPT_ERROR_LENGTH = 96
"""Characters of the stored error message of an earlier attempt; the last attempt's is stored in full."""
MAX_LOGGED_TRACEBACK_LENGTH = 100_000
"""Characters of a logged traceback: the last ones (Source: CloudWatch Logs quotas, 256 KB a line)."""
MAX_TRACEBACK_LENGTH = 4_000
"""Characters of a stored traceback: the last ones, or fewer if they do not compress to `MAX_TRACEBACK_BYTES`."""
MAX_TRACEBACK_BYTES = 900
"""Size of a stored traceback, compressed: with its keys, one write unit."""
ATTEMPTS_INLINE = 5
"""Attempts that are stored in the record; older ones are moved to items of their own."""
ACTIONS_INLINE = 10
"""Actions of users that the record of a task keeps; of more, the oldest are dropped and counted."""
ACTIONS_INLINE_BYTES = 1_000
"""Bytes that the actions in a record may have together before compression; the newest is kept whatever its size."""
INLINE_CONTENT_BYTES = 512
"""A compressed payload or result up to this size is stored in the record, which must stay below 1 KB."""
ITEM_CONTENT_BYTES = 200_000
"""A compressed payload or result up to this size is stored in an item of its own; a larger one in S3."""
