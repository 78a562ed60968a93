"""Lists that come in pages, each naming the next by a token."""

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
    """Every entry of a list with the answer that it came in, fetched page by page as it is asked for.

    Args:
        transport: What sends the requests.
        path: The list's address.
        entries: The field of an answer that holds its entries.
        query: The list's other parameters.

    Raises:
        UnexpectedResponse: An answer is no page of such a list.
    """
    token = ""
    while True:
        response = transport.request("GET", path, query=[*query, *([("next_token", token)] if token else [])])
        page = document_of(response)
        found = page.get(entries) if isinstance(page, dict) else None
        if not isinstance(page, dict) or not isinstance(found, list):
            raise unexpected_response(response, f"no page of {entries} in the answer")
        for entry in found:
            yield response, entry
        token = str(page.get("next_token") or "")
        if not token:
            return
