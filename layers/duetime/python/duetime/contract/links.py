"""The REST API for links: bodies, responses and operations."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import parse_qsl

from pydantic import AfterValidator, Field
from typing_extensions import TypedDict  # required by pydantic before Python 3.12

from duetime.contract.http import request_json
from duetime.contract.http.operation import Operation, Returns
from duetime.contract.http.request_errors import BodyUnreadable, Fault, FaultCode, FieldsInvalid
from duetime.contract.http.request_json import compact
from duetime.contract.http.request_model import Body
from duetime.contract.http.validation_errors import read_body
from duetime.contract.mapping import response_of
from duetime.contract.tasks.fields import printable
from duetime.contract.tasks.operations import TaskAction
from duetime.contract.tasks.responses import Instant
from duetime.domain import errors
from duetime.domain.limits import MAX_LINK_LIFE, MAX_LINK_MESSAGE_LENGTH, MAX_RESULT_BYTES, MIN_LINK_LIFE
from duetime.domain.links import Link, LinkAction, LinkUse, NewLink, waits_for
from duetime.domain.operating_parameters import LINK_KEPT
from duetime.domain.tasks.states import State
from duetime.domain.times import DAY, SECOND

if TYPE_CHECKING:
    from duetime.contract.http.request_json import Document
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis

FORM = "application/x-www-form-urlencoded"
"""Content type of the forms that a link's page sends; the page uses forms because it works without scripts."""
_MOST_FIELDS = 10
_DEFAULT_LIFE = DAY


def _each_once(actions: list[LinkAction]) -> list[LinkAction]:
    if len(set(actions)) != len(actions):
        raise ValueError("has an action twice")
    return actions


class LinkCreate(Body):
    """A link to be created."""

    actions: Annotated[
        list[Annotated[LinkAction, Field(strict=False)]],
        Field(
            min_length=1,
            max_length=2,
            description="The permitted actions: `approve` and `reject` for a task that waits for approval, `complete` "
            "and `fail` for the running attempt of a task that is completed from outside, or only `watch`. Every link "
            "shows the state of its task.",
            examples=[["approve", "reject"]],
        ),
        AfterValidator(_each_once),
    ]
    expires_seconds: Annotated[
        int,
        Field(
            ge=MIN_LINK_LIFE // SECOND,
            le=MAX_LINK_LIFE // SECOND,
            description="How many seconds the link is valid.",
        ),
    ] = _DEFAULT_LIFE // SECOND
    message: Annotated[
        str,
        Field(
            max_length=MAX_LINK_MESSAGE_LENGTH,
            description="Message for the person who opens the link.",
            examples=["Pay £500 to Ann?"],
        ),
        AfterValidator(printable),
    ] = ""
    takes_payload: Annotated[
        bool,
        Field(
            description="Whether the link's holder may send a payload, which becomes the task's result. Only for "
            "links with `approve` or `complete`."
        ),
    ] = False


class LinkUseRequest(TaskAction):
    """Uses a link; the body can be left out if the link permits only one action."""

    action: Annotated[
        LinkAction | None,
        Field(strict=False, description="The action to perform; null for the only action that the link permits."),
    ] = None
    payload: Annotated[
        Any,
        Field(
            description="The task's result, for a link with `takes_payload`: any JSON, at most "
            f"{MAX_RESULT_BYTES} bytes.",
            examples=[{"limit": 500}],
        ),
    ] = None


class LinkResponse(TypedDict):
    """A link, without its secret."""

    id: Annotated[str, Field(description="Id of the link; not secret.")]
    actions: Annotated[Sequence[LinkAction], Field(description="The permitted actions.")]
    message: Annotated[str, Field(description="Message for the person who opens the link.")]
    takes_payload: Annotated[bool, Field(description="Whether the link's holder may send a payload.")]
    ended: Annotated[
        str | None,
        Field(
            description="Why the link is rejected: it was used, has expired, its task was retried, or its attempt has "
            "ended; null if the link is valid."
        ),
    ]
    created_at: Annotated[Instant, Field(description="When the link was created.")]
    created_by: Annotated[str, Field(description="Who created the link.")]
    expires_at: Annotated[Instant, Field(description="When the link expires.")]
    used_at: Annotated[Instant | None, Field(description="When the link was used; null if unused.")]
    used_for: Annotated[LinkAction | None, Field(description="The action that the link was used for; null if unused.")]


class CreatedLink(LinkResponse):
    """A new link, with its URL."""

    url: Annotated[
        str,
        Field(description="The link's URL, for one person. Its token is not stored, so the URL is never shown again."),
    ]


class LinkList(TypedDict):
    """The links of a task."""

    links: Annotated[Sequence[LinkResponse], Field(description="The links, in order of creation.")]


class LinkedTask(TypedDict):
    """The fields of a task that a link shows."""

    name: Annotated[str | None, Field(description="Human-readable name.")]
    type: Annotated[str, Field(description="Type of the task.")]
    state: Annotated[State, Field(description="State of the task.")]
    due_at: Annotated[Instant, Field(description="When the task was due.")]
    finished_at: Annotated[Instant | None, Field(description="When the task ended; null until then.")]
    percent: Annotated[int | None, Field(description="Progress of the task; null if none was reported.")]


class OpenedLink(TypedDict):
    """A link as its holder sees it."""

    actions: Annotated[Sequence[LinkAction], Field(description="The permitted actions.")]
    message: Annotated[str, Field(description="Message from the person who created the link.")]
    takes_payload: Annotated[bool, Field(description="Whether a payload may be sent.")]
    is_awaited: Annotated[bool, Field(description="Whether the task currently waits for one of the actions.")]
    expires_at: Annotated[Instant, Field(description="When the link expires.")]
    used_at: Annotated[Instant | None, Field(description="When the link was used; null if unused.")]
    used_for: Annotated[LinkAction | None, Field(description="The action that the link was used for; null if unused.")]
    task: Annotated[LinkedTask, Field(description="The link's task.")]


def new_link(document: Document) -> NewLink:
    """Decodes a link to be created.

    Raises:
        FieldsInvalid: some fields are invalid.
        FieldInvalid: the actions cannot be combined, or do not allow a payload.
    """
    body = read_body(LinkCreate, document)
    actions = tuple(each for each in LinkAction if each in body.actions)
    wanted = NewLink(actions, body.expires_seconds * SECOND, body.takes_payload, body.message)
    wanted.check()
    return wanted


def link_use(document: Document) -> LinkUse:
    """Decodes a use of a link.

    Raises:
        FieldsInvalid: some fields are invalid.
    """
    body = read_body(LinkUseRequest, document)
    payload = compact(body.payload) if "payload" in body.model_fields_set else None
    if payload is not None and len(payload) > MAX_RESULT_BYTES:
        raise FieldsInvalid([Fault("payload", f"is larger than {MAX_RESULT_BYTES} bytes", FaultCode.TOO_LONG)])
    return LinkUse(body.action, payload, body.reason)


def form_document(text: str) -> Document:
    """Converts a form that a link's page has sent into JSON, without empty fields.

    Raises:
        BodyUnreadable: the text is not a form.
    """
    try:
        fields = parse_qsl(text, errors="strict", max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise BodyUnreadable("is not a form in UTF-8, or has too many fields") from None
    # Browsers add carriage returns at the ends of typed lines, but a reason must be one line.
    typed = {name: " ".join(value.split()) if name == "reason" else value for name, value in fields}
    return request_json.document_of(json.dumps(typed))


def link_response(link: Link, task: Task, now: Millis) -> LinkResponse:
    """The response for a link."""
    ended = "it has been used" if link.used_at is not None else link.end(task, now)
    return response_of(LinkResponse, link, ended=ended)


def created_link(link: Link, url: str) -> CreatedLink:
    """The response for a new link."""
    return response_of(CreatedLink, link, ended=None, url=url)


def opened_link(link: Link, task: Task, now: Millis) -> OpenedLink:
    """A link as its holder sees it, without private fields of the task such as its payload."""
    shown = response_of(
        LinkedTask,
        task,
        type=task.type,
        name=task.name,
        percent=None if task.progress is None else task.progress.percent,
    )
    return response_of(OpenedLink, link, is_awaited=waits_for(task, link, now), task=shown)


CREATE = Operation(
    "createTaskLink",
    "POST /v1/tasks/{task_id}/links",
    "Create a link to a task",
    Returns(CreatedLink, "The link with its URL, which is never shown again.", status=201),
    description="With the link, somebody without credentials can approve, report on or watch this one task. The link "
    "can be used once. The link ends when it expires, when the task is retried, or when the attempt that it reports "
    "on ends. Opening the link changes nothing. Repeating the request creates another link.",
    body=LinkCreate,
    errors=(errors.StateConflict, errors.LinksFull),
)
LIST = Operation(
    "listTaskLinks",
    "GET /v1/tasks/{task_id}/links",
    "List the links of a task",
    Returns(LinkList, "The links, in order of creation."),
    description=f"Expired links are listed for another {LINK_KEPT // DAY} days.",
)
DELETE = Operation(
    "deleteTaskLink",
    "DELETE /v1/tasks/{task_id}/links/{link_id}",
    "Delete a link",
    Returns(None, "The link is deleted.", status=204),
    description="The link is rejected as soon as this request has returned.",
)
OPEN = Operation(
    "getTaskLink",
    "GET /v1/links/{token}",
    "Get a link's purpose",
    Returns(OpenedLink, "What the link permits, and the state of its task."),
    description="The request needs no credentials besides the token, and changes nothing, because mail programs may "
    "open links. Browsers, which accept `text/html`, get a page with buttons.",
    errors=(errors.LinkEnded, errors.QuotaExceeded, errors.Unavailable),
    is_public=True,
)
USE = Operation(
    "useTaskLink",
    "POST /v1/links/{token}",
    "Use a link",
    Returns(OpenedLink, "The link after its use, and the state of its task."),
    description="The request needs no credentials besides the token. The decision becomes an event of the task, with "
    "the link's id as its author. If the task does not wait for the decision yet, the request is rejected, and the "
    "link can still be used.",
    body=LinkUseRequest,
    body_types=(FORM,),
    errors=(errors.LinkEnded, errors.StateConflict, errors.QuotaExceeded, errors.Unavailable),
    is_public=True,
)
