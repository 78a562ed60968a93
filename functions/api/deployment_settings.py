"""Handler for the deployment's settings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.composition import composed
from duetime.composition.core import CoreServices, QuotaServices
from duetime.contract.deployment_settings import (
    GET,
    DeploymentSettings,
    LogLocation,
    OwnQuota,
    PulledType,
    TypeRetention,
    UsableSecret,
)
from duetime.contract.tasks.encoding import json_text
from duetime.domain.callers import Reservations, Role
from duetime.domain.times import DAY, SECOND

from .requests import owners_of_caller
from .responses import Response, answer
from .routing import route

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.callers import Caller
    from duetime.domain.tasks.allowed_targets import TargetRules
    from duetime.settings import Settings

    from .requests import Request


@route(GET)
def get_settings(request: Request) -> Response:
    """Read the deployment's settings that are relevant to the caller."""
    settings = composed().settings
    owners = [request.owner] if request.parent else owners_of_caller(request.event, settings)
    return answer(json_text(_settings(settings, request.caller, owners, composed(CoreServices).target_rules)))


def _quotas(owner: str) -> list[OwnQuota]:
    services = composed(QuotaServices)
    limits = services.book.of(owner)
    used = services.usage.of(owner, limits)
    return [OwnQuota(quota=each.value, limit=limits.limit(each) or 0, used=number) for each, number in used.items()]


def _settings(settings: Settings, caller: Caller, owners: Sequence[str], rules: TargetRules) -> DeploymentSettings:
    """The settings visible to a caller; operators also see settings that are reserved for other owners."""
    owner = caller.owner
    stack, region, log_group = settings.worker_logs
    pullers = settings.pullers
    leased = {name for name in pullers.by_type if pullers.allow(owner, name)}
    if caller.is_operator:
        rules = replace(rules, type_owners=Reservations(), arn_owners=Reservations())
    return DeploymentSettings(
        owner=owner,
        owners=owners,
        roles=[role for role in Role if caller.has(role)],
        is_operator=caller.is_operator,
        authentication=settings.authentication.value,
        handler_types=None if rules.handled is None else sorted(rules.usable_types(owner, rules.handled)),
        pulled_types=[
            PulledType(type=name, may_lease=name in leased)
            for name in sorted(leased | rules.usable_types(owner, pullers.by_type))
        ],
        aws_targets=[each for each in settings.callable_arns.patterns if rules.allow_arn(owner, each)],
        private_http_hosts=sorted(settings.http_allow),
        http_secrets=[
            UsableSecret(name=name, hosts=sorted(secret.hosts))
            for name, secret in sorted(settings.http_secrets.by_name.items())
            if caller.is_operator or settings.http_secrets.refusal_of_owner(name, owner) is None
        ],
        retention_days=settings.retention.default / DAY,
        retention_by_type=[
            TypeRetention(types=pattern, days=kept / DAY)
            for pattern, kept in settings.retention.by_pattern.items()
            if rules.type_owners.allow(owner, pattern)
        ],
        is_archived=bool(settings.archive_bucket),
        is_counted=bool(settings.summary_spread),
        precision=settings.precision,
        shards=settings.shards,
        look_ahead_seconds=settings.look_ahead_ms / SECOND,
        requests_per_second=settings.requests_per_second or None,
        waiting_requests=settings.long_polls or None,
        quotas=_quotas(owner) if settings.has_quotas else None,
        logs=LogLocation(stack=stack, region=region or None, log_group=log_group or None) if stack else None,
    )
