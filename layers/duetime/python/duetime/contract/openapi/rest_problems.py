"""The problems of the REST API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.contract.http.problems import INTERNAL, KINDS
from duetime.domain.errors import SubscriptionsFull

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.contract.http.problems import Kind

_OF_LIVE_UPDATES = frozenset({SubscriptionsFull})
"""Errors that occur only over a WebSocket connection: the AsyncAPI document describes them."""


def rest_kinds() -> Mapping[type[Exception], Kind]:
    """The problems of REST requests, by error."""
    return {error: kind for error, kind in KINDS.items() if error not in _OF_LIVE_UPDATES}


def rest_codes() -> frozenset[str]:
    """The codes of all problems of the REST API."""
    return frozenset({*(kind.code for kind in rest_kinds().values()), INTERNAL.code})
