"""Lists in pages, each with a token for the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime_client.problems import document_of, unexpected_response

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import httpx

    from duetime_client.transport import Transport


def pages(
    transport: Transport, path: str, entries: str, query: Sequence[tuple[str, str]] = ()
) -> Iterator[tuple[httpx.Response, object]]:
    """Every entry of a list with its response, fetched page by page as it is needed.

    Args:
        transport: Sends the requests.
        path: The path of the list.
        entries: The field of a response that holds the entries.
        query: The list's other parameters.

    Raises:
        UnexpectedResponse: A response is not a page of such a list.
    """
    token = ""
    while True:
        response = transport.request("GET", path, query=[*query, *([("next_token", token)] if token else [])])
        page = document_of(response)
        found = page.get(entries) if isinstance(page, dict) else None
        if not isinstance(page, dict) or not isinstance(found, list):
            raise unexpected_response(response, f"no page of {entries} in the response")
        for entry in found:
            yield response, entry
        token = str(page.get("next_token") or "")
        if not token:
            return
