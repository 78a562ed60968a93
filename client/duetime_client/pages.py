"""Reads lists page by page; each page has a token for the next page."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from duetime_client.io_operations import Item, Request
from duetime_client.problems import document_of, unexpected_response
from duetime_client.session import PageRead

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import httpx

    from duetime_client.io_operations import Items
    from duetime_client.session import Session

T = TypeVar("T")


def pages(
    session: Session,
    path: str,
    entries: str,
    decode: Callable[[httpx.Response, object], T],
    query: Sequence[tuple[str, str]] = (),
) -> Items[T]:
    """Yield every entry of a list; pages are fetched as needed.

    Args:
        session: Sends the requests.
        path: The path of the list.
        entries: The field of a response that holds the entries.
        decode: Reads one entry of a response.
        query: The list's other parameters.

    Raises:
        UnexpectedResponse: A response is not a page of the list.
    """

    def notice(read: PageRead) -> None:
        for listener in session.page_listeners:
            listener(read)

    token = ""
    while True:
        found, token = yield from session.send(page(path, entries, decode, query, token, notice))
        for entry in found:
            yield Item(entry)
        if not token:
            return


def page(
    path: str,
    entries: str,
    decode: Callable[[httpx.Response, object], T],
    query: Sequence[tuple[str, str]] = (),
    token: str = "",
    notice: Callable[[PageRead], object] | None = None,
) -> Request[tuple[list[T], str]]:
    """Read the entries of one page, and the token of the next page, which is empty after the last page."""

    def read_page(response: httpx.Response) -> tuple[list[T], str]:
        document = document_of(response)
        found = document.get(entries) if isinstance(document, dict) else None
        if not isinstance(document, dict) or not isinstance(found, list):
            raise unexpected_response(response, f"no page of {entries} in the response")
        if notice is not None:
            notice(_read(document, len(found)))
        return [decode(response, entry) for entry in found], str(document.get("next_token") or "")

    more = [("next_token", token)] if token else []
    return Request("GET", path, read_page, query=[*query, *more])


def _read(document: Mapping[str, Any], entries: int) -> PageRead:
    """The progress of a list after a page; not all lists report their progress."""
    applied = document.get("applied")
    said: Mapping[str, Any] = applied if isinstance(applied, dict) else {}
    examined, reached = said.get("examined"), said.get("examined_to")
    return PageRead(
        entries,
        examined if isinstance(examined, int) else entries,
        datetime.fromisoformat(reached) if isinstance(reached, str) else None,
        bool(document.get("next_token")),
    )
