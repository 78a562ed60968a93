"""Closes connections that a test's botocore clients leave behind, before the next test starts.

The garbage collector would close the connections, too, but at an unpredictable time. If a test is just then parsing a
text with the deepest possible nesting, closing fails because the stack is exhausted, and a later test is blamed for the
open sockets.
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
def _remembering(session: Any, *arguments: Any, **named: Any) -> None:  # noqa: ANN401 - as in the original
    _init(session, *arguments, **named)
    _OPENED.add(session)


def close_connections() -> None:
    """Close all open connections; a client that is used again opens a new connection."""
    for session in list(_OPENED):
        session.close()
