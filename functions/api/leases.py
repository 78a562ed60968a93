"""Handlers for pull workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.composition import composed
from duetime.composition.attempts import PullServices
from duetime.contract import leases
from duetime.contract.leases import key_of
from duetime.domain.tasks.attempt_results import Stopped

from .responses import Response, answer
from .routing import route

if TYPE_CHECKING:
    from duetime.domain.tasks.attempt_results import Ending
    from duetime.domain.tasks.pull_leases import LeaseKey

    from .requests import Request


@route(leases.LEASE)
def acquire_leases(request: Request) -> Response:
    """Lease due tasks."""
    wanted = leases.lease_request(request.document(), request.owner)
    leased = composed(PullServices).leases.lease(request.owner, wanted)
    return answer(leases.leases_text((each.key, each.task, each.checkpoint, each.inputs) for each in leased))


@route(leases.HEARTBEAT)
def renew_lease(request: Request) -> Response:
    """Renew a lease."""
    # A heartbeat may have an empty body.
    reported = leases.lease_heartbeat(request.document()) if request.has_body else ()
    reports = composed(PullServices).reports
    return answer(leases.lease_state(reports.heartbeat(request.owner, _key(request), *reported)))


@route(leases.LIST_STEPS)
def list_lease_steps(request: Request) -> Response:
    """Read the stored steps of a leased task."""
    return answer(leases.stored_steps(composed(PullServices).reports.steps(request.owner, _key(request))))


@route(leases.PUT_STEP)
def put_lease_step(request: Request) -> Response:
    """Store a step."""
    key, name = _key(request), leases.step_name(request.parameters["step"])
    result, took = leases.step_done(request.document())
    stored = composed(PullServices).reports.store_step(request.owner, key, name, result, took)
    return answer(leases.stored_step(name, stored))


@route(leases.COMPLETE)
def complete_lease(request: Request) -> Response:
    """Record a success."""
    return _ended(request, leases.completion(request.document()))


@route(leases.FAIL)
def fail_lease(request: Request) -> Response:
    """Record a failure."""
    return _ended(request, leases.lease_failure(request.document()))


@route(leases.PAUSE)
def acknowledge_lease_pause(request: Request) -> Response:
    """Record that an attempt has stopped because of a requested pause."""
    return _ended(request, leases.lease_pause(request.document()))


@route(leases.CANCEL)
def acknowledge_lease_cancel(request: Request) -> Response:
    """Record that an attempt has stopped because of a requested cancellation."""
    return _ended(request, Stopped())


@route(leases.RELEASE)
def release_lease(request: Request) -> Response:
    """Release a task."""
    return answer(leases.lease_state(composed(PullServices).reports.release(request.owner, _key(request))))


def _ended(request: Request, ending: Ending) -> Response:
    return answer(leases.lease_state(composed(PullServices).reports.finish(request.owner, _key(request), ending)))


def _key(request: Request) -> LeaseKey:
    return key_of(request.parameters["lease_id"])
