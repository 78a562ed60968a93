"""Closes the connections of botocore's clients that a test leaves behind, before the next test begins.

The garbage collector closes them, too, but at any moment: within a text that is nested as deeply as Python allows,
closing them fails for want of stack, and a later test is blamed for the sockets that stay open.
"""

from __future__ import annotations

from functools import wraps
from typing import Any
from weakref import WeakSet

from botocore.httpsession import URLLib3Session

_OPENED: WeakSet[Any] = WeakSet()
_init = URLLib3Session.__init__


def remember_connections() -> None:
    """Remember the connections of all clients that this process creates from now on."""
    URLLib3Session.__init__ = _remembering  # type: ignore[method-assign, assignment]


@wraps(_init)
def _remembering(session: Any, *arguments: Any, **named: Any) -> None:  # noqa: ANN401 - as the original has them
    _init(session, *arguments, **named)
    _OPENED.add(session)


def close_connections() -> None:
    """Close open connections; a client opens another one when it is used again."""
    for session in list(_OPENED):
        session.close()
