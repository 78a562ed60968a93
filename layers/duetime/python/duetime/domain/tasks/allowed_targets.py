"""What the settings of a deployment let tasks call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.limits import MAX_REQUEST_BYTES, MAX_TIMEOUT_SECONDS
from duetime.domain.tasks.allowed_secrets import HttpSecrets
from duetime.domain.tasks.arns import ArnPatterns, AwsService, service_of
from duetime.domain.tasks.http_requests import BODILESS, AuthScheme
from duetime.domain.tasks.targets import (
    AwsTarget,
    CallbackTarget,
    HandlerTarget,
    HttpTarget,
    PullTarget,
    TopologyTarget,
)
from duetime.domain.tasks.url_policy import refusal

if TYPE_CHECKING:
    from collections.abc import Collection

    from duetime.domain.tasks.http_requests import Auth, HttpRequest
    from duetime.domain.tasks.targets import Target
    from duetime.domain.tasks.task_spec import TaskSpec


_NO_ARNS = ArnPatterns()
_NO_SECRETS = HttpSecrets()
_NOT_CALLABLE = "is not among the resources that the settings let tasks call"
_OURS_ONLY = "is of duetime's own request only, which `method` and `body` replace"
_TOO_LONG = f"should be less than or equal to {MAX_TIMEOUT_SECONDS}, unless pull workers run the task"
_MOST_TOLD = 20
"""Types that a rejection names."""


@dataclass(frozen=True, slots=True)
class TargetRules:
    """What tasks may call.

    Attributes:
        pulled: the types that the settings declare as pulled.
        callable_arns: the AWS resources that tasks may call.
        reachable_hosts: hosts that HTTP calls may reach although they are not public.
        handled: the types that have a handler; `None` where that is not known, and no type is rejected.
        secrets: the secrets that HTTP calls may use.
    """

    pulled: Collection[str] = ()
    callable_arns: ArnPatterns = _NO_ARNS
    reachable_hosts: Collection[str] = ()
    handled: Collection[str] | None = None
    secrets: HttpSecrets = _NO_SECRETS

    def accept(self, spec: TaskSpec) -> Target:
        """What a task that is requested now calls; later `target_of` says it, whatever has happened to its type.

        Raises:
            FieldInvalid: as by `target_of`; or it is of a type that no handler is known for, and that is not allowed.
        """
        target = self.target_of(spec)
        is_known = self.handled is None or spec.type in self.handled or spec.allow_unknown_type
        if isinstance(target, HandlerTarget) and not is_known:
            raise FieldInvalid("type", self._unknown(spec.type), FaultCode.NOT_ALLOWED)
        return target

    def target_of(self, spec: TaskSpec) -> Target:
        """What a task calls: what was requested, else the workers that pull its type, else its handler.

        Raises:
            FieldInvalid: its type cannot be pulled, or pull workers would roll it back; likewise for AWS resources,
                and for topologies; or an HTTP call would lead to an address that is not public; or an attempt may take
                longer than a worker function can.
        """
        target = spec.target or (PullTarget() if spec.type in self.pulled else HandlerTarget())
        if isinstance(target, PullTarget) and spec.type not in self.pulled:
            raise FieldInvalid(
                "target",
                f"is 'pull', but the settings do not declare the type {spec.type!r} as pulled",
                FaultCode.NOT_ALLOWED,
            )
        if isinstance(target, AwsTarget) and not self.callable_arns.allow(target.arn):
            raise FieldInvalid("target.arn", _NOT_CALLABLE, FaultCode.NOT_ALLOWED)
        if isinstance(target, AwsTarget) and target.place and not self.callable_arns.allow(target.place):
            where = "cluster" if target.service is AwsService.ECS else "queue"
            raise FieldInvalid(f"target.{where}", _NOT_CALLABLE, FaultCode.NOT_ALLOWED)
        if isinstance(target, HttpTarget):
            self._check_http(target)
        if spec.callback_url is not None:
            self._check_url("callback_url", spec.callback_url)
        if spec.notify_on is not None:
            self._check_address("notify_on.to", spec.notify_on.to)
        if spec.rollback_on_failure and (why := _lacking_rollback(target)):
            raise FieldInvalid("rollback_on_failure", f"needs a target that offers it; {why}", FaultCode.CONFLICT)
        if spec.timeout_seconds > MAX_TIMEOUT_SECONDS and not isinstance(target, PullTarget):
            raise FieldInvalid("timeout_seconds", _TOO_LONG, FaultCode.OUT_OF_RANGE)
        return target

    def _unknown(self, task_type: str) -> str:
        pulled = f"; pulled types: {_told(self.pulled)}" if self.pulled else ""
        return (
            f"{task_type!r} is not known to this deployment; its handlers are for {_told(self.handled or ())}{pulled};"
            " give `allow_unknown_type` for one that a later deployment brings"
        )

    def _check_address(self, field: str, address: str) -> None:
        """Reject an address that notices would not be sent to."""
        if service_of(address) is None:
            self._check_url(field, address)
        elif not self.callable_arns.allow(address):
            raise FieldInvalid(field, _NOT_CALLABLE, FaultCode.NOT_ALLOWED)

    def _check_http(self, target: HttpTarget) -> None:
        """Reject a request that contradicts itself, or leads where it may not, or where its secret may not."""
        self._check_url("target.url", target.url)
        _check_request(target)
        auth = target.request.auth
        if auth and (why := self.secrets.refusal(auth.secret, target.url, self.reachable_hosts)):
            raise FieldInvalid("target.auth.secret", why, FaultCode.NOT_ALLOWED)

    def _check_url(self, field: str, url: str) -> None:
        if why := refusal(url, self.reachable_hosts):
            raise FieldInvalid(field, why)


def _check_request(target: HttpTarget) -> None:
    """Reject a request that contradicts itself, or is too large for a record."""
    request = target.request
    if request.is_custom and target.offers_more:
        raise FieldInvalid(f"target.{target.offers_more}", _OURS_ONLY, FaultCode.CONFLICT)
    if request.body is not None and request.method in BODILESS:
        raise FieldInvalid("target.body", f"cannot be sent with {request.method}", FaultCode.CONFLICT)
    if request.auth is not None:
        _check_header(request.auth, request)
    if request.size > MAX_REQUEST_BYTES:
        why = f"has more than {MAX_REQUEST_BYTES} bytes of headers, query and body; send a larger body as `payload`"
        raise FieldInvalid("target", why, FaultCode.TOO_LONG)


def _check_header(auth: Auth, request: HttpRequest) -> None:
    """Reject a header for a secret where there is none, or none where there is one, or the same header twice."""
    if (auth.scheme is AuthScheme.HEADER) != bool(auth.header):
        why = "names the header of the scheme `header`, and of no other"
        raise FieldInvalid("target.auth.header", why, FaultCode.CONFLICT)
    if auth.header.lower() in {name.lower() for name, _ in request.headers}:
        raise FieldInvalid("target.headers", f"has {auth.header!r}, which `auth` sends", FaultCode.CONFLICT)


def _told(types: Collection[str]) -> str:
    """Some types, by name."""
    names = sorted(types)
    more = f" and {len(names) - _MOST_TOLD} more" if len(names) > _MOST_TOLD else ""
    return ", ".join(map(repr, names[:_MOST_TOLD])) + more if names else "none"


def _lacking_rollback(target: Target) -> str:
    """Why a target offers no rollback; an empty text if it may."""
    match target:
        case PullTarget():
            return "pull workers do not"
        case AwsTarget():
            return "AWS resources do not"
        case CallbackTarget():
            return "callbacks do not"
        case TopologyTarget():
            return "a topology's graph has `on_failure` for that"
        case _:
            return ""
