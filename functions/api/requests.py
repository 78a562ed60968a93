"""Parses API requests (callers, parameters and bodies), and checks them against quotas."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic

from typing_extensions import TypeVar  # supports `default` before Python 3.13

from duetime.composition import composed
from duetime.composition.core import CoreServices, QuotaServices
from duetime.contract.http import operation as declared
from duetime.contract.http import request_json
from duetime.contract.http.etags import version_wanted
from duetime.contract.http.operation import no_query, read_query, reference_to
from duetime.contract.http.request_errors import (
    BodyUnreadable,
    CallerForbidden,
    CallerUnknown,
    Fault,
    FaultCode,
    ParametersInvalid,
)
from duetime.contract.tasks.fields import OWNER_PATTERN, OWNER_RULE
from duetime.contract.tasks.operations import EmptyRequest, action_reason, reject_fields
from duetime.domain.callers import Caller, Role
from duetime.domain.errors import LeaseOnlyCreates, OwnerForbidden, TaskNotFound
from duetime.domain.ids import TRACEPARENT, InvalidTaskId, TaskId, read_traceparent
from duetime.domain.limits import IDEMPOTENCY_KEY_LIFE, MAX_IDEMPOTENCY_KEY_LENGTH, MAX_JSON_DEPTH, MIN_KEY_SECONDS
from duetime.domain.operating_parameters import API_KEY_SESSION
from duetime.domain.tasks.action_history import Attribution
from duetime.domain.tasks.targets import TopologyTarget
from duetime.domain.times import SECOND
from duetime.settings import Authentication
from duetime_common.frozen_classes import frozen
from duetime_common.payload_codecs import BASE64, CONTENT_TYPE, ENCRYPTED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duetime.contract.http.operation import Operation, Parameters
    from duetime.contract.http.request_json import Document
    from duetime.domain.tasks.type_defaults import TaskSpec
    from duetime.domain.times import Millis
    from duetime.services.quotas.rates import QuotaGuard
    from duetime.settings import Settings


HANDLER = "duetime"
"""Name of the authorizer context in requests from handlers, which reach this function without the gateway.

The context contains the task and its owner, and whether the handler can only create tasks. In requests through the
gateway, the gateway itself writes the authorizer context.
"""
API_KEY = "lambda"
"""Name under which the gateway passes on the context that duetime's authorizer returns for an API key."""
OWNER_HEADER = declared.OWNER.name.lower()
"""Header with the owner that the caller wants to act for."""
LOCAL_OWNER = "local"
SCOPE = re.compile(r"duetime[:/](?P<role>\S*)")
"""A token scope that grants a role, such as `duetime:reader`, or `duetime/reader` in Cognito."""
_OWNER = re.compile(OWNER_PATTERN)
_ARN_PARTS = 6
_EPOCH_SECONDS = re.compile(r"[0-9]{1,11}")


@frozen
class Sender:
    """The sender of a request, and the owner that the request acts for.

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


@frozen
class Identity:
    """The identity that the gateway's authorizer verified.

    Attributes:
        name: the identity as an owner's name; the caller acts for this owner by default.
        actor: the caller's name in histories, which distinguishes the users of a role.
        roles: the roles that a token or an API key grants; `None` if neither limits the caller.
        owners: other owners for which a token lets its caller act.
    """

    name: str
    actor: str
    roles: frozenset[Role] | None = None
    owners: frozenset[str] = frozenset()


def sender_of(event: Mapping[str, Any], operation: Operation[Any]) -> Sender:
    """The sender of a request, who must have the role that the operation needs.

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
    # The handler is not an administrator, because anyone who can create tasks for it would gain that role.
    caller = Caller(owner, _usual_roles({owner}, composed().settings) - {Role.ADMIN}, owner)
    caller.require(operation.needs)
    return Sender(caller, TaskId.parse(handler["task_id"]))


def _sender_with_lease(caller: Caller, lease: str, operation: Operation[Any]) -> Sender:
    """The sender of a pull worker's request, which acts for the leased task."""
    # Few requests have a lease, so the modules are imported only for them.
    from duetime.composition.attempts import PullServices  # noqa: PLC0415 - see the line above
    from duetime.contract.leases import key_of  # noqa: PLC0415 - same

    creates = declared.LEASE in operation.headers
    if not (creates and caller.has(Role.WORKER)):
        caller.require(operation.needs)
    task = composed(PullServices).reports.leased_task(caller.owner, key_of(lease))
    if task.owner != caller.owner and not creates:
        raise LeaseOnlyCreates
    return Sender(replace(caller, owner=task.owner), task.id)


def caller_of(event: Mapping[str, Any], settings: Settings) -> Caller:
    """The caller of a request, with the owner that it acts for.

    An administrator may read the data of every owner, but may write only for the owners that it may act for.

    Raises:
        CallerUnknown: the gateway passed no identity.
        CallerForbidden: the identity is not a valid owner.
        OwnerForbidden: the caller may not act for the owner that its request names.
        ParametersInvalid: the request names an invalid owner.
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
    """All owners that the caller of a request may act for, sorted by name."""
    identities = [identity_of(event, settings)]
    if settings.authentication is Authentication.NONE and not _authorizer(event).get(API_KEY):
        # The default owner is added, so that a caller that chose another owner can switch back.
        identities.append(Identity(LOCAL_OWNER, LOCAL_OWNER))
    names = {name for each in identities for name in (each.name, *_teams_of(each, settings))}
    return sorted(name for name in names if _OWNER.fullmatch(name) is not None)


def _teams_of(identity: Identity, settings: Settings) -> frozenset[str]:
    """The owners that an identity may act for, in addition to the owner with the identity's name."""
    return identity.owners | {owner for owner, members in settings.teams.items() if identity.name in members}


def _usual_roles(names: set[str], settings: Settings) -> frozenset[Role]:
    """The roles of a caller that no token or key limits, derived from the names of the caller and the owner."""
    roles = {Role.WRITER, Role.WORKER}
    if any(map(settings.operators.include, names)):
        roles.add(Role.OPERATOR)
    if any(map(settings.admins.include, names)):
        roles.add(Role.ADMIN)
    return frozenset(roles)


def identity_of(event: Mapping[str, Any], settings: Settings) -> Identity:
    """The identity that the authorizer verified for the sender of a request.

    Raises:
        CallerUnknown: the gateway passed no identity.
        ParametersInvalid: the request names an invalid owner.
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
    """The identity for an API key from the authorizer. The identity's name in histories cannot be an owner's name."""
    return Identity(key["owner"], f"key {key['key']}", frozenset(map(Role, key["roles"].split())))


def _identity_of_arn(arn: object) -> Identity:
    """The identity of an IAM user or role. The owner excludes the session name, which changes with each login."""
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
    # A scope with an unknown role grants no role, so that a misspelled scope does not grant too much.
    roles = frozenset(Role(each) for each in named if each in list(Role)) if named else None
    owners = frozenset(_items(claims.get(teams_claim))) if teams_claim else frozenset()
    return Identity(name, name, roles, owners)


def _items(claim: object) -> list[str]:
    """The items of a claim: a list, a string with spaces, or the string `[a b]` (the gateway's form of a list)."""
    if isinstance(claim, list):
        return [each for each in claim if isinstance(each, str)]
    return claim.removeprefix("[").removesuffix("]").replace(",", " ").split() if isinstance(claim, str) else []


def _owner_header(event: Mapping[str, Any]) -> str | None:
    owner = header_of(event, OWNER_HEADER)
    if owner is not None and _OWNER.fullmatch(owner) is None:
        raise ParametersInvalid.of(declared.OWNER.name, OWNER_RULE, FaultCode.PATTERN)
    return owner


def session_end(event: Mapping[str, Any], now: Millis) -> Millis | None:
    """When a live connection of the caller must end; `None` if neither a token nor a key limits the connection."""
    authorizer = _authorizer(event)
    if key := authorizer.get(API_KEY):
        expires = int(key["expires"]) * SECOND if key["expires"] else now + API_KEY_SESSION
        return min(expires, now + API_KEY_SESSION)
    seconds = str(((authorizer.get("jwt") or {}).get("claims") or {}).get("exp", ""))
    return int(seconds) * SECOND if _EPOCH_SECONDS.fullmatch(seconds) else None


def _authorizer(event: Mapping[str, Any]) -> Mapping[str, Any]:
    return event.get("requestContext", {}).get("authorizer") or {}


def header_of(event: Mapping[str, Any], name: str) -> str | None:
    """The value of a request's header; the gateway passes header names in lower case."""
    value = (event.get("headers") or {}).get(name.lower())
    return value if isinstance(value, str) else None


_ENCRYPTED = re.compile(rf'"{BASE64}":"[^"]*"(?=,"{CONTENT_TYPE}":"{re.escape(ENCRYPTED)}")')
"""Matches the bytes of an encrypted payload in JSON with sorted fields."""
ICALENDAR = "text/calendar"
Q = TypeVar("Q", bound="Parameters", default=Any)
_KEY = re.compile(rf"[!-~]{{1,{MAX_IDEMPOTENCY_KEY_LENGTH}}}")
_ULIDS = ("task_id", "topology_id", "operation_id")
"""Path parameters that are not case-sensitive."""


@frozen
class Request(Generic[Q]):
    """A request for an operation.

    Attributes:
        event: the gateway's event.
        operation: the requested operation.
        parameters: path parameters.
        caller: the sender of the request, with the owner that the request acts for.
        query: query parameters, parsed by the operation's model.
        version: version required by `If-Match`; `None` for any version.
        key: idempotency key.
        key_life: how long the key is stored, in milliseconds.
        parent: the task whose handler sends the request; `None` for other callers.
    """

    event: Mapping[str, Any]
    operation: Operation[Q]
    parameters: Mapping[str, str]
    caller: Caller
    query: Q
    version: int | None
    key: str | None
    key_life: Millis
    parent: TaskId | None = None

    @property
    def owner(self) -> str:
        """The owner that the request acts for; empty if the operation is public."""
        return self.caller.owner

    @property
    def name(self) -> str:
        """The name in the path."""
        return self.parameters["name"]

    @property
    def task_id(self) -> TaskId:
        """The id of the task or topology in the path; a topology has the same id as its task.

        Raises:
            TaskNotFound: the text is not a valid id.
        """
        text = self.parameters["topology_id" if "topology_id" in self.parameters else "task_id"]
        try:
            return TaskId.parse(text)
        except InvalidTaskId:
            raise TaskNotFound(TaskId(text)) from None

    def reference_to(self, operation: Operation[Any]) -> str:
        """The path of an operation without parameters, relative to this request's path."""
        return reference_to(operation.path, self.event["rawPath"])

    def attributed(self, reason: str) -> Attribution:
        """The caller of the request, with the given reason."""
        actor = self.caller.actor if self.parent is None else f"handler of {self.parent}"
        # The record already contains the owner, so an actor that is the owner is left out.
        return Attribution(name="" if actor == self.owner else actor, reason=reason)

    @property
    def attribution(self) -> Attribution:
        """The caller and reason of an action whose body is optional and has no other fields."""
        return self.attributed(action_reason(self.document()) if self.has_body else "")

    @property
    def instance(self) -> str:
        """The URN of this request."""
        return instance(self.event)

    @property
    def raw_query(self) -> str:
        """The query string as sent."""
        return _raw_query(self.event)

    @property
    def has_body(self) -> bool:
        """Whether the request has a body with content."""
        return bool((self.event.get("body") or "").strip())

    @property
    def size(self) -> int:
        """Size of the body as sent, in characters."""
        return len(self.event.get("body") or "")

    @property
    def is_icalendar(self) -> bool:
        """Whether the content type says that the body is an iCalendar file."""
        return (self.header("Content-Type") or "").partition(";")[0].strip().lower() == ICALENDAR

    @property
    def traceparent(self) -> str | None:
        """The request's trace context; `None` if the header is missing or malformed."""
        return read_traceparent(self.header(TRACEPARENT))

    def header(self, name: str) -> str | None:
        """The value of a header, if the request has it."""
        return header_of(self.event, name)

    def document(self) -> Document:
        """The body's JSON, sanitized."""
        media_type = self.header("Content-Type")
        if media_type is not None and media_type != declared.JSON:
            # Most clients send exactly this media type, so other media types are parsed only here.
            declared.reject_unless_json(media_type, self.operation.media_types)
        return request_json.document_of(self._text(), MAX_JSON_DEPTH + self.operation.nesting)

    def reject_body(self) -> None:
        """Reject a body with fields; a missing body and an empty object are allowed."""
        if self.has_body:
            reject_fields(self.document())

    def text(self) -> bytes:
        """The body of the request in UTF-8, whatever it contains.

        Raises:
            BodyUnreadable: the body is not valid UTF-8.
        """
        try:
            return self._text().encode()
        except UnicodeEncodeError as error:
            raise BodyUnreadable(f"contains a lone surrogate at character {error.start}") from None

    def _text(self) -> str:
        return request_json.text_of(
            self.event.get("body") or "",
            is_base64=bool(self.event.get("isBase64Encoded")),
            encoding=(self.header("Content-Encoding") or "").strip().lower().removeprefix("identity"),
            length=self.header("Content-Length"),
        )


def read(event: Mapping[str, Any], operation: Operation[Q], parameters: Mapping[str, str]) -> Request[Q]:
    """Parse the request in an event, with everything that its operation declares except the body.

    Raises:
        RequestError: the caller, the query or a header is invalid, or there is a body with content
            although the operation has no fields.
    """
    _reject_ignored_conditions(event, operation)
    sender = sender_of(event, operation)
    query: Any = None
    raw_query = _raw_query(event)
    if operation.query is None:
        no_query(raw_query)
    else:
        query = read_query(operation.query, raw_query)
    key = _idempotency_key(event) if declared.KEY in operation.headers else None
    key_life = _key_life(event, key, sender) if declared.KEY_LIFE in operation.headers else _usual_key_life(sender)
    if key is not None and sender.task_id is not None:
        # A client's key contains no space, so a task's keys never equal the keys of other requests.
        key = f"{sender.task_id} {key}"
    version = None
    if declared.IF_MATCH in operation.headers:
        version = version_wanted(header_of(event, declared.IF_MATCH.name))
    known = _with_capitals(parameters)
    request = Request(event, operation, known, sender.caller, query, version, key, key_life, sender.task_id)
    if operation.body is EmptyRequest or (operation.body is None and operation.method != "GET"):
        request.reject_body()
    return request


def request_id(event: Mapping[str, Any]) -> str:
    """The id of a request, which identifies the request's lines in the gateway's log."""
    return str(event.get("requestContext", {}).get("requestId", "unnamed"))


def instance(event: Mapping[str, Any]) -> str:
    """The id of a request, as a URN."""
    return f"urn:duetime:request:{request_id(event)}"


def body_hash(value: object) -> str:
    """A hash of a body's JSON that does not depend on field order, whitespace or encrypted bytes."""
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"))
    if ENCRYPTED in canonical:
        # Encrypting the same payload twice yields different bytes.
        canonical = _ENCRYPTED.sub("", canonical)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _reject_ignored_conditions(event: Mapping[str, Any], operation: Operation[Any]) -> None:
    """Reject a conditional header that the operation does not check, because the client relies on the check."""
    if operation.is_safe:
        return
    honored = {header.name for header in operation.headers}
    ignored = [name for name in declared.CONDITIONS if name not in honored and header_of(event, name) is not None]
    if ignored:
        reason = f"is not supported by {operation.id}: it would not be checked, so the request was not carried out"
        raise ParametersInvalid(Fault(name, reason, FaultCode.UNSUPPORTED) for name in ignored)


def _with_capitals(parameters: Mapping[str, str]) -> Mapping[str, str]:
    """The path parameters, with the ids of tasks, topologies and operations in upper case."""
    return {name: text.upper() if name in _ULIDS and text.isascii() else text for name, text in parameters.items()}


def _raw_query(event: Mapping[str, Any]) -> str:
    return event.get("rawQueryString") or ""


def _idempotency_key(event: Mapping[str, Any]) -> str | None:
    name = declared.KEY.name
    key = header_of(event, name)
    if key is not None and _KEY.fullmatch(key) is None:
        reason = f"should be 1 to {MAX_IDEMPOTENCY_KEY_LENGTH} visible ASCII characters"
        raise ParametersInvalid.of(name, reason, FaultCode.PATTERN)
    return key


def _usual_key_life(sender: Sender) -> Millis:
    """How long an idempotency key is kept by default. A task's keys are kept longer, because it may be retried late."""
    return IDEMPOTENCY_KEY_LIFE if sender.task_id is None else composed().settings.retention.shortest


def _key_life(event: Mapping[str, Any], key: str | None, sender: Sender) -> Millis:
    name = declared.KEY_LIFE.name
    text = header_of(event, name)
    if text is None:
        return _usual_key_life(sender)
    if key is None:
        raise ParametersInvalid.of(name, f"has no effect without {declared.KEY.name}", FaultCode.CONFLICT)
    most = composed().settings.retention.shortest // SECOND
    if re.fullmatch("[0-9]{1,9}", text) is None or not MIN_KEY_SECONDS <= int(text) <= most:
        reason = f"should be a whole number of seconds, {MIN_KEY_SECONDS} to {most}"
        raise ParametersInvalid.of(name, reason, FaultCode.OUT_OF_RANGE)
    return int(text) * SECOND


def admit_read(request: Request) -> None:
    """Check a request against the owner's quota for reads, if the request is a read.

    Raises:
        QuotaExceeded: the owner has used up a quota.
    """
    if request.owner and request.operation.method == "GET" and composed().settings.has_quotas:
        _guard().admit_read(request.owner)


def admit_tasks(request: Request, specs: Sequence[TaskSpec]) -> None:
    """Check a request that creates these tasks against the owner's quotas.

    Raises:
        QuotaExceeded: the owner has used up a quota.
    """
    if composed().settings.has_quotas:
        _guard().admit_tasks(request.owner, len(specs), request.size, partial(_most_nodes, request.owner, specs))


def _most_nodes(owner: str, specs: Sequence[TaskSpec]) -> int:
    """The number of nodes of the largest topology among new tasks; 0 without a topology."""
    count = composed(CoreServices).topology_definitions.node_count
    return max((count(owner, spec) for spec in specs if isinstance(spec.target, TopologyTarget)), default=0)


def admit_manual_run(request: Request) -> None:
    """Check a request that runs a schedule's task against the owner's quotas; a topology waits for its nodes' quota.

    Raises:
        QuotaExceeded: the owner has used up a quota.
    """
    if composed().settings.has_quotas:
        _guard().admit_tasks(request.owner, 1, request.size)


def admit_upload(request: Request, size: int) -> None:
    """Check a request that uploads a payload of this size against the owner's quotas.

    Raises:
        QuotaExceeded: the owner has used up a quota.
    """
    if composed().settings.has_quotas:
        _guard().admit_tasks(request.owner, 0, size)


def admit_schedule(request: Request) -> None:
    """Check a request that creates a schedule against the owner's quotas.

    Raises:
        QuotaExceeded: the owner has used up a quota.
    """
    if composed().settings.has_quotas:
        _guard().admit_schedule(request.owner, request.size)


def _guard() -> QuotaGuard:
    return composed(QuotaServices).guard
