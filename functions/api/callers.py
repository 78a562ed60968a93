"""Who sends a request: the identity that the gateway verified, the owner that it acts for, and its roles."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from duetime.composition import composed
from duetime.contract.http import operation as declared
from duetime.contract.http.request_errors import (
    CallerForbidden,
    CallerUnknown,
    FaultCode,
    ParametersInvalid,
)
from duetime.contract.tasks.fields import OWNER_PATTERN, OWNER_RULE
from duetime.domain.callers import Caller, Role
from duetime.domain.errors import LeaseOnlyCreates, OwnerForbidden
from duetime.domain.ids import TaskId
from duetime.domain.operating_parameters import API_KEY_SESSION
from duetime.domain.times import SECOND
from duetime.settings import Authentication

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duetime.contract.http.operation import Operation
    from duetime.domain.times import Millis
    from duetime.settings import Settings

HANDLER = "duetime"
"""The authorizer of requests from handlers, whose functions invoke this function without the gateway.

It names the task and its owner, and whether the handler can only create tasks. Authorizers of requests through the
gateway are written by the gateway.
"""
API_KEY = "lambda"
"""Where the gateway puts the context that our authorizer returns for an API key."""
OWNER_HEADER = declared.OWNER.name.lower()
"""Header with the owner that the caller wants to act for."""
LOCAL_OWNER = "local"
SCOPE = re.compile(r"duetime[:/](?P<role>\S*)")
"""A scope of a token that gives a role: `duetime:reader`, or `duetime/reader` as Cognito writes it."""
_OWNER = re.compile(OWNER_PATTERN)
_ARN_PARTS = 6
_EPOCH_SECONDS = re.compile(r"[0-9]{1,11}")


@dataclass(frozen=True, slots=True)
class Sender:
    """Who sends a request, and for whom.

    Attributes:
        caller: the caller, with the owner that the request acts for.
        task_id: the task whose handler sends the request; `None` for other callers.
    """

    caller: Caller
    task_id: TaskId | None = None

    @property
    def owner(self) -> str:
        """The owner that the request acts for; empty if the operation is public."""
        return self.caller.owner


@dataclass(frozen=True, slots=True)
class Identity:
    """What the gateway's authorizer verified.

    Attributes:
        name: in the form of owners; the caller acts for it by default.
        actor: name in histories, which distinguishes the users of a role.
        roles: the roles that a token gives; `None` if it does not limit its caller.
        owners: further owners that a token lets its caller act for.
    """

    name: str
    actor: str
    roles: frozenset[Role] | None = None
    owners: frozenset[str] = frozenset()


def sender_of(event: Mapping[str, Any], operation: Operation[Any]) -> Sender:
    """The sender of a request, who has the role that the operation needs.

    Raises:
        RequestError: the caller is unknown or invalid, may not act for the owner or the task that it names, or lacks
            the role.
    """
    handler = _authorizer(event).get(HANDLER)
    if handler is not None:
        return _handler(handler, operation)
    if operation.is_public:
        return Sender(Caller(""))
    caller = caller_of(event, composed().settings)
    lease = header_of(event, declared.LEASE.name)
    if lease is None:
        caller.require(operation.needs)
        return Sender(caller)
    return _sender_with_lease(caller, lease, operation)


def _handler(handler: Mapping[str, Any], operation: Operation[Any]) -> Sender:
    if handler.get("only_creates") and declared.LEASE not in operation.headers:
        raise LeaseOnlyCreates
    owner = handler["owner"]
    # Whoever can create tasks for an administrator's handlers should not become one.
    caller = Caller(owner, _usual_roles({owner}, composed().settings) - {Role.ADMIN}, owner)
    caller.require(operation.needs)
    return Sender(caller, TaskId.parse(handler["task_id"]))


def _sender_with_lease(caller: Caller, lease: str, operation: Operation[Any]) -> Sender:
    """The handler of a pull worker, which acts for the task that it runs."""
    # Few requests have a lease, so the modules are imported only for them.
    from duetime.composition.attempts import PullServices  # noqa: PLC0415 - see the line above
    from duetime.contract.pull.lease_decoding import key_of  # noqa: PLC0415 - same

    creates = declared.LEASE in operation.headers
    if not (creates and caller.has(Role.WORKER)):
        caller.require(operation.needs)
    task = composed(PullServices).reports.leased_task(caller.owner, key_of(lease))
    if task.owner != caller.owner and not creates:
        raise LeaseOnlyCreates
    return Sender(replace(caller, owner=task.owner), task.id)


def caller_of(event: Mapping[str, Any], settings: Settings) -> Caller:
    """The caller of a request, with the owner that it acts for.

    An administrator reads what any owner has, but acts only for those of its own.

    Raises:
        CallerUnknown: the gateway passed no identity.
        CallerForbidden: the identity is no valid owner.
        OwnerForbidden: the caller may not act for the owner that its request names.
        ParametersInvalid: the request names no valid owner.
    """
    identity = identity_of(event, settings)
    if _OWNER.fullmatch(identity.name) is None:
        raise CallerForbidden(OWNER_RULE)
    owner = _owner_header(event) or identity.name
    is_own = owner == identity.name or owner in _teams_of(identity, settings)
    names = {identity.name, owner} if is_own else {identity.name}
    roles = _usual_roles(names, settings) if identity.roles is None else identity.roles
    if is_own:
        return Caller(owner, roles, identity.actor)
    if Role.ADMIN not in roles:
        raise OwnerForbidden(owner)
    return Caller(owner, frozenset({Role.READER}), identity.actor, is_own=False)


def owners_of_caller(event: Mapping[str, Any], settings: Settings) -> Sequence[str]:
    """All owners that the caller of a request may act for, in order of name."""
    identities = [identity_of(event, settings)]
    if settings.authentication is Authentication.NONE and not _authorizer(event).get(API_KEY):
        # Whoever has named an owner can leave it again.
        identities.append(Identity(LOCAL_OWNER, LOCAL_OWNER))
    names = {name for each in identities for name in (each.name, *_teams_of(each, settings))}
    return sorted(name for name in names if _OWNER.fullmatch(name) is not None)


def _teams_of(identity: Identity, settings: Settings) -> frozenset[str]:
    """The owners that an identity may act for, besides itself."""
    return identity.owners | {owner for owner, members in settings.teams.items() if identity.name in members}


def _usual_roles(names: set[str], settings: Settings) -> frozenset[Role]:
    """The roles of a caller whom no token or key limits, by its own name and that of the owner."""
    roles = {Role.WRITER, Role.WORKER}
    if any(map(settings.operators.include, names)):
        roles.add(Role.OPERATOR)
    if any(map(settings.admins.include, names)):
        roles.add(Role.ADMIN)
    return frozenset(roles)


def identity_of(event: Mapping[str, Any], settings: Settings) -> Identity:
    """What the authorizer verified about the sender of a request.

    Raises:
        CallerUnknown: the gateway passed no identity.
        ParametersInvalid: the request names no valid owner.
    """
    authorizer = _authorizer(event)
    if key := authorizer.get(API_KEY):
        return _identity_of_key(key)
    match settings.authentication:
        case Authentication.NONE:
            owner = _owner_header(event) or LOCAL_OWNER
            return Identity(owner, owner)
        case Authentication.IAM:
            return _identity_of_arn((authorizer.get("iam") or {}).get("userArn"))
        case Authentication.JWT:
            return _identity_of_claims((authorizer.get("jwt") or {}).get("claims") or {}, settings.teams_claim)


def _identity_of_key(key: Mapping[str, str]) -> Identity:
    """The identity of an API key, as the authorizer passes it on; its name in histories cannot be an owner's."""
    return Identity(key["owner"], f"key {key['key']}", frozenset(map(Role, key["roles"].split())))


def _identity_of_arn(arn: object) -> Identity:
    """The identity of an IAM user or role: account and name, without the session, which changes with each login."""
    parts = arn.split(":", _ARN_PARTS - 1) if isinstance(arn, str) else []
    if len(parts) != _ARN_PARTS:
        raise CallerUnknown
    account, resource = parts[-2:]
    kind, _, name = resource.partition("/")
    if kind != "assumed-role":
        return Identity(f"{account}:{resource}", f"{account}:{resource}")
    role, _, session = name.partition("/")
    owner = f"{account}:role/{role}"
    return Identity(owner, f"{owner}/{session}" if session else owner)


def _identity_of_claims(claims: Mapping[str, Any], teams_claim: str) -> Identity:
    name = claims.get("sub")
    if not name or not isinstance(name, str):
        raise CallerUnknown
    scopes = [*_items(claims.get("scope")), *_items(claims.get("scp"))]
    named = [found["role"] for each in scopes if (found := SCOPE.fullmatch(each)) is not None]
    # A scope that names no role gives none, so that a misspelt one does not give more than it should.
    roles = frozenset(Role(each) for each in named if each in list(Role)) if named else None
    owners = frozenset(_items(claims.get(teams_claim))) if teams_claim else frozenset()
    return Identity(name, name, roles, owners)


def _items(claim: object) -> list[str]:
    """The items of a claim: of a list, which the gateway passes as `[a b]`, or of text with spaces."""
    if isinstance(claim, list):
        return [each for each in claim if isinstance(each, str)]
    return claim.removeprefix("[").removesuffix("]").replace(",", " ").split() if isinstance(claim, str) else []


def _owner_header(event: Mapping[str, Any]) -> str | None:
    owner = header_of(event, OWNER_HEADER)
    if owner is not None and _OWNER.fullmatch(owner) is None:
        raise ParametersInvalid.of(declared.OWNER.name, OWNER_RULE, FaultCode.PATTERN)
    return owner


def session_end(event: Mapping[str, Any], now: Millis) -> Millis | None:
    """When a live connection of the caller has to end; `None` if neither a token nor a key limits it."""
    authorizer = _authorizer(event)
    if key := authorizer.get(API_KEY):
        expires = int(key["expires"]) * SECOND if key["expires"] else now + API_KEY_SESSION
        return min(expires, now + API_KEY_SESSION)
    seconds = str(((authorizer.get("jwt") or {}).get("claims") or {}).get("exp", ""))
    return int(seconds) * SECOND if _EPOCH_SECONDS.fullmatch(seconds) else None


def _authorizer(event: Mapping[str, Any]) -> Mapping[str, Any]:
    return event.get("requestContext", {}).get("authorizer") or {}


def header_of(event: Mapping[str, Any], name: str) -> str | None:
    """A header of a request; the gateway passes names in lower case."""
    value = (event.get("headers") or {}).get(name.lower())
    return value if isinstance(value, str) else None
