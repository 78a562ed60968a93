"""Page tokens: opaque to clients, good for the one list they were handed out for.

A token grants nothing, since a list is always read as its caller. It carries a check so that one that was cut,
altered or taken from another list is refused, rather than answered with a page from somewhere else.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re

from duetime.contract.refusals import ParametersInvalid
from duetime.domain.ids import InvalidTaskId, TaskId

PARAMETER = "next_token"
_VERSION = "1"
_CHECK_BYTES = 9
_ALPHABET = re.compile(r"[A-Za-z0-9_-]+")
_LONGEST = 128


def token_of(after: TaskId, scope: str) -> str:
    """The token that goes on behind an id.

    Args:
        after: the last id of a page.
        scope: which list it is a page of: the owner, the order and the filters.
    """
    text = f"{_VERSION}{after}{_check(after, scope)}"
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def after_of(token: str, scope: str) -> TaskId:
    """The id that a token goes on behind.

    Raises:
        ParametersInvalid: the token was not handed out for this list.
    """
    after = _parsed(token)
    if after is None or token_of(after, scope) != token:
        raise ParametersInvalid.of(PARAMETER, "was not handed out for this list")
    return after


def _parsed(token: str) -> TaskId | None:
    if len(token) > _LONGEST or _ALPHABET.fullmatch(token) is None:
        return None
    try:
        text = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode("ascii")
        return TaskId.parse(text[1:27])
    except (binascii.Error, UnicodeDecodeError, InvalidTaskId):
        return None


def _check(after: TaskId, scope: str) -> str:
    digest = hashlib.blake2b(f"{after}\n{scope}".encode(), digest_size=_CHECK_BYTES).digest()
    return base64.urlsafe_b64encode(digest).decode()
