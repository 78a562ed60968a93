"""The kinds of problems of the REST API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.contract.http.problems import INTERNAL, KINDS
from duetime.domain.errors import SubscriptionsFull

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.contract.http.problems import Kind

_OF_LIVE_UPDATES = frozenset({SubscriptionsFull})
"""Errors that only messages over a WebSocket connection are answered with: the AsyncAPI document describes them."""


def rest_kinds() -> Mapping[type[Exception], Kind]:
    """What requests may be refused with, by the error."""
    return {error: kind for error, kind in KINDS.items() if error not in _OF_LIVE_UPDATES}


def rest_codes() -> frozenset[str]:
    """The codes of all problems that the REST API answers."""
    return frozenset({*(kind.code for kind in rest_kinds().values()), INTERNAL.code})
