"""The handlers of the tasks that gave up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.contract.bulk.bodies import RedriveMany
from duetime.contract.tasks import dead_letters

from .filter_actions import take
from .routing import route
from .tasks import filtered_page

if TYPE_CHECKING:
    from duetime.contract.tasks.queries import DeadLetterQuery

    from .requests import Request
    from .responses import Response


@route(dead_letters.LIST)
def list_dead_letters(request: Request[DeadLetterQuery]) -> Response:
    """Read a page of the tasks that gave up."""
    return filtered_page(request.owner, request.query)


@route(dead_letters.REDRIVE)
def redrive_dead_letters(request: Request) -> Response:
    """Have them tried again."""
    return take(request, RedriveMany)
