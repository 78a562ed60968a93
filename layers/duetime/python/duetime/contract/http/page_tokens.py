"""Page tokens, which are opaque to clients and valid only for the list that returned them.

A token grants no permissions, because lists are always read on behalf of the caller. A checksum in the token ensures
that a token that was truncated, changed or taken from another list is rejected instead of returning an unrelated page.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re

from duetime.contract.http.request_errors import ParametersInvalid
from duetime.domain.ids import InvalidTaskId, TaskId

PARAMETER = "next_token"
_VERSION = "1"
_CHECK_BYTES = 9
_CHECK_LENGTH = 12
"""Length of the checksum in base64."""
_ALPHABET = re.compile(r"[A-Za-z0-9_-]+")
_LONGEST = 256


def token_of(after: TaskId, scope: str) -> str:
    """The token that continues after an id.

    Args:
        after: the last id of a page.
        scope: identifies the list by owner, order and filters.
    """
    return text_token(after.text, scope)


def text_token(after: str, scope: str) -> str:
    """The token that continues after the last entry of a page, in a list sorted by ASCII text."""
    text = f"{_VERSION}{after}{_check(after, scope)}"
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def text_after(token: str, scope: str) -> str:
    """The text after which a token continues.

    Raises:
        ParametersInvalid: the token does not belong to this list.
    """
    after = unchecked_text(token)
    if not after or text_token(after, scope) != token:
        raise ParametersInvalid.of(PARAMETER, "does not belong to this list")
    return after


def unchecked_text(token: str) -> str:
    """The text after which a token continues, for a token that was already validated."""
    return _decoded(token)[1:-_CHECK_LENGTH]


def after_of(token: str, scope: str) -> TaskId:
    """The id after which a token continues.

    Raises:
        ParametersInvalid: the token does not belong to this list.
    """
    try:
        return TaskId.parse(text_after(token, scope))
    except InvalidTaskId:
        raise ParametersInvalid.of(PARAMETER, "does not belong to this list") from None


def _decoded(token: str) -> str:
    """The text in a token; empty if the token is invalid."""
    if len(token) > _LONGEST or _ALPHABET.fullmatch(token) is None:
        return ""
    try:
        return base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode("ascii")
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _check(after: str, scope: str) -> str:
    digest = hashlib.blake2b(f"{after}\n{scope}".encode(), digest_size=_CHECK_BYTES).digest()
    return base64.urlsafe_b64encode(digest).decode()
