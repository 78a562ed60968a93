"""The routes of pull workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_lambda_powertools.event_handler.api_gateway import Response, Router

from duetime.composition.api import composed
from duetime.contract.http import routes
from duetime.contract.pull import lease_decoding
from duetime.contract.pull.lease_tokens import key_of
from duetime.contract.tasks.queries import no_query
from duetime.domain.tasks.attempt_outcomes import Stopped

from . import requests
from .identity import asked
from .responses import answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.contract.http.safe_json import Document
    from duetime.domain.tasks.attempt_outcomes import Ending

router = Router()  # type: ignore[no-untyped-call] # Powertools leaves its constructor untyped


@router.post(routes.LEASES)
def lease_tasks() -> Response[str]:
    """Lease due tasks."""
    event, caller = asked(router)
    no_query(requests.query(event))
    wanted = lease_decoding.lease_request(requests.body(event), caller)
    leased = composed().lease_service.lease(caller, wanted)
    return answer(lease_decoding.leases_text((each.key, each.task, each.checkpoint, each.inputs) for each in leased))


@router.post(requests.pattern(routes.LEASE_HEARTBEAT))
def renew_lease(lease_id: str) -> Response[str]:
    """Renew a lease."""
    event, caller = asked(router)
    no_query(requests.query(event))
    # A sign of life need not say anything.
    progress = lease_decoding.lease_progress(requests.body(event)) if requests.has_body(event) else None
    return answer(lease_decoding.lease_state(composed().lease_reports.heartbeat(caller, key_of(lease_id), progress)))


@router.post(requests.pattern(routes.LEASE_COMPLETE))
def complete_lease(lease_id: str) -> Response[str]:
    """Take a success."""
    return _ended(lease_id, lease_decoding.completion)


@router.post(requests.pattern(routes.LEASE_FAIL))
def fail_lease(lease_id: str) -> Response[str]:
    """Take a failure."""
    return _ended(lease_id, lease_decoding.lease_failure)


@router.post(requests.pattern(routes.LEASE_PAUSE))
def pause_lease(lease_id: str) -> Response[str]:
    """Take a pause that was asked for."""
    return _ended(lease_id, lease_decoding.lease_pause)


@router.post(requests.pattern(routes.LEASE_CANCEL))
def cancel_lease(lease_id: str) -> Response[str]:
    """Take a cancel that was asked for."""
    event, caller = asked(router)
    no_query(requests.query(event))
    requests.no_body(event)
    return answer(lease_decoding.lease_state(composed().lease_reports.finish(caller, key_of(lease_id), Stopped())))


@router.post(requests.pattern(routes.LEASE_RELEASE))
def release_lease(lease_id: str) -> Response[str]:
    """Take a task back."""
    event, caller = asked(router)
    no_query(requests.query(event))
    requests.no_body(event)
    return answer(lease_decoding.lease_state(composed().lease_reports.release(caller, key_of(lease_id))))


def _ended(lease_id: str, read: Callable[[Document], Ending]) -> Response[str]:
    event, caller = asked(router)
    no_query(requests.query(event))
    ending = read(requests.body(event))
    return answer(lease_decoding.lease_state(composed().lease_reports.finish(caller, key_of(lease_id), ending)))
