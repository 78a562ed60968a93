"""Tests that deprecated operations are marked in each response and in the OpenAPI document."""

from __future__ import annotations

from datetime import date

from duetime.contract.http.operation import Operation, Returns
from duetime.contract.openapi import document
from duetime.contract.openapi.document import responses

GOING = Operation(
    "getOld", "GET /v1/old", "Read", Returns(dict, "It."), deprecated=date(2027, 3, 1), sunset=date(2028, 3, 1)
)
STAYING = Operation("getNew", "GET /v1/new", "Read", Returns(dict, "It."))


def test_a_deprecated_operation_returns_deprecation_and_sunset_headers() -> None:
    """`Deprecation` is a structured date and `Sunset` an HTTP date; other operations have neither header."""
    assert GOING.deprecation_headers == {"Deprecation": "@1803859200", "Sunset": "Wed, 01 Mar 2028 00:00:00 GMT"}
    assert STAYING.deprecation_headers == {}


def test_the_document_marks_deprecated_operations() -> None:
    """Deprecated operations are marked in the document, and their headers are described."""
    examples: dict[str, object] = {}
    going, staying = (document._operation(one, document.Access("none"), examples) for one in (GOING, STAYING))
    assert going["deprecated"] is True
    assert "deprecated" not in staying
    assert set(responses(GOING)["200"]["headers"]) == {"Deprecation", "Sunset", "Request-Id", "ETag"}
    assert set(responses(STAYING)["200"]["headers"]) == {"Request-Id", "ETag"}
