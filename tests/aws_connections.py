"""Closes the connections of botocore's clients that a test leaves behind, before the next test begins.

The garbage collector closes them, too, but at any moment: within a text that is nested as deeply as Python allows,
closing them fails for want of stack, and a later test is blamed for the sockets that stay open.
"""

from __future__ import annotations

from functools import wraps
from typing import Any
from weakref import WeakSet

from botocore.httpsession import URLLib3Session

from duetime.adapters.dynamodb.connections import Connections

_OPENED: WeakSet[Any] = WeakSet()


def remember_connections() -> None:
    """Remember the connections of all clients that are made in this process from now on."""
    for kind in (URLLib3Session, Connections):
        _remember(kind)


def _remember(kind: Any) -> None:  # noqa: ANN401 - a class whose initializer is replaced
    init = kind.__init__

    @wraps(init)
    def remembering(session: Any, *arguments: Any, **named: Any) -> None:  # noqa: ANN401 - as the original has them
        init(session, *arguments, **named)
        _OPENED.add(session)

    kind.__init__ = remembering


def close_connections() -> None:
    """Close what is open; a client that is used again opens another."""
    for session in list(_OPENED):
        session.close()
