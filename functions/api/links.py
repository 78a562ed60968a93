"""Handlers for managing links, and for requests from link holders, who have no other credentials."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from duetime.composition import composed
from duetime.composition.api import LinkServices
from duetime.contract import links
from duetime.contract.http.problems import kind_of
from duetime.contract.tasks.encoding import json_text
from duetime.domain.errors import LinkEnded, LinkNotFound, RequestError
from duetime.domain.links import LinkUse

from . import link_page
from .responses import Response, answer, no_content
from .routing import route

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.links import Link
    from duetime.domain.tasks.task import Task

    from .requests import Request


@route(links.CREATE)
def create_task_link(request: Request) -> Response:
    """Create a link."""
    wanted = links.new_link(request.document())
    link, token = composed(LinkServices).admin.create(request.caller, request.task_id, wanted)
    # The URL has no host if the deployment does not know the API's address.
    url = composed().settings.api_url + links.OPEN.url(token=token)
    return answer(json_text(links.created_link(link, url)), HTTPStatus.CREATED)


@route(links.LIST)
def list_task_links(request: Request) -> Response:
    """Read the links of a task."""
    task, found = composed(LinkServices).admin.list(request.owner, request.task_id)
    now = composed().runtime.now()
    return answer(json_text(links.LinkList(links=[links.link_response(each, task, now) for each in found])))


@route(links.DELETE)
def delete_task_link(request: Request) -> Response:
    """Delete a link."""
    composed(LinkServices).admin.delete(request.owner, request.task_id, request.parameters["link_id"])
    return no_content()


@route(links.OPEN)
def get_link(request: Request) -> Response:
    """Read what a link can be used for, without changing anything."""
    return _shown(request, lambda: composed(LinkServices).holders.read(request.parameters["token"]))


@route(links.USE)
def use_link(request: Request) -> Response:
    """Carry out a link holder's request."""
    return _shown(request, lambda: composed(LinkServices).holders.use(request.parameters["token"], _use_of(request)))


def _use_of(request: Request) -> LinkUse:
    if not request.has_body:
        return LinkUse()
    media_type = (request.header("Content-Type") or "").partition(";")[0].strip().lower()
    if media_type != links.FORM:
        return links.link_use(request.document())
    return links.link_use(links.form_document(request.text().decode()))


def _shown(request: Request, carry_out: Callable[[], tuple[Link, Task]]) -> Response:
    """The response for a link, which is a page for browsers and JSON for other clients."""
    is_page = "text/html" in (request.header("Accept") or "").lower()
    try:
        link, task = carry_out()
    except RequestError as error:
        if not is_page:
            raise
        is_over = isinstance(error, LinkNotFound | LinkEnded)
        return link_page.response_of(link_page.refusal(str(error), is_over=is_over), kind_of(error).status)
    opened = links.opened_link(link, task, composed().runtime.now())
    if is_page:
        return link_page.response_of(link_page.page_of(opened))
    return answer(json_text(opened))
