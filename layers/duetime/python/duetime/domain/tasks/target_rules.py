"""What the settings of a deployment let tasks call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.tasks.arns import ArnPatterns, service_of
from duetime.domain.tasks.targets import AwsTarget, HandlerTarget, HttpTarget, PullTarget, TopologyTarget
from duetime.domain.tasks.url_policy import refusal

if TYPE_CHECKING:
    from collections.abc import Collection

    from duetime.domain.tasks.targets import Target
    from duetime.domain.tasks.task import TaskSpec


_NO_ARNS = ArnPatterns()
_NOT_CALLABLE = "is not among the resources that the settings let tasks call"
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
    """

    pulled: Collection[str] = ()
    callable_arns: ArnPatterns = _NO_ARNS
    reachable_hosts: Collection[str] = ()
    handled: Collection[str] | None = None

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
                and for topologies; or an HTTP call would lead to an address that is not public.
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
        if isinstance(target, HttpTarget):
            self._check_url("target.url", target.url)
        if spec.callback_url is not None:
            self._check_url("callback_url", spec.callback_url)
        if spec.notify_on is not None:
            self._check_address("notify_on.to", spec.notify_on.to)
        if spec.rollback_on_failure and (why := _lacking_rollback(target)):
            raise FieldInvalid("rollback_on_failure", f"needs a target that offers it; {why}", FaultCode.CONFLICT)
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

    def _check_url(self, field: str, url: str) -> None:
        if why := refusal(url, self.reachable_hosts):
            raise FieldInvalid(field, why)


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
        case TopologyTarget():
            return "a topology's graph has `on_failure` for that"
        case _:
            return ""
