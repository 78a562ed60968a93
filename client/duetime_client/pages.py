"""Lists in pages, each with a token for the next."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from duetime_client.io_operations import Item, Request
from duetime_client.problems import document_of, unexpected_response

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
    """Every entry of a list, fetched page by page as it is needed.

    Args:
        session: Sends the requests.
        path: The path of the list.
        entries: The field of a response that holds the entries.
        decode: Reads one entry of a response.
        query: The list's other parameters.

    Raises:
        UnexpectedResponse: A response is not a page of such a list.
    """
    token = ""
    while True:
        found, token = yield from session.send(page(path, entries, decode, query, token))
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
) -> Request[tuple[list[T], str]]:
    """Reads one page: its entries, and the token of the next page, which is empty if there is none."""

    def read_page(response: httpx.Response) -> tuple[list[T], str]:
        document = document_of(response)
        found = document.get(entries) if isinstance(document, dict) else None
        if not isinstance(document, dict) or not isinstance(found, list):
            raise unexpected_response(response, f"no page of {entries} in the response")
        return [decode(response, entry) for entry in found], str(document.get("next_token") or "")

    more = [("next_token", token)] if token else []
    return Request("GET", path, read_page, query=[*query, *more])
