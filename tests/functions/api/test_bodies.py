"""Tests of the types and encodings of request and response bodies, and of the errors for unreadable bodies."""

from __future__ import annotations

import base64
import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.limits import MAX_BODY_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.functions.api.gateway import Answer, Gateway

GOOD = {"type": "report", "delay_seconds": 60, "payload": {"rows": [1, 2, 3]}}
GZIP = {"Content-Encoding": "gzip"}
ACCEPTED = {"Accept-Encoding": "gzip, deflate, br"}


def sent(api: Gateway, data: bytes, headers: Mapping[str, str] | None = None) -> Answer:
    """Send a body of bytes, which the gateway passes on in Base64."""
    return api.send("POST", "/v1/tasks", raw=base64.b64encode(data).decode(), headers=headers, is_base64=True)


def reason(answer: Answer, status: int, code: str, field: str = "body") -> str:
    """Assert that a request was refused with one fault, and return the fault's reason."""
    assert (answer.status, answer.problem["code"], list(answer.faults)) == (status, code, [field]), answer.text
    return answer.faults[field]


def unpacked(answer: Answer) -> Any:  # noqa: ANN401 - any JSON
    """The JSON of a compressed response, after decompression."""
    assert answer.headers["Content-Encoding"] == "gzip"
    assert answer.is_base64
    return json.loads(gzip.decompress(base64.b64decode(answer.text)))


def test_a_gzip_body_is_decompressed(api: Gateway) -> None:
    """A gzip body is decompressed, whatever the name and case of the encoding in the header."""
    for name in ("gzip", "GZIP", "x-gzip", " gzip "):
        answer = sent(api, gzip.compress(json.dumps(GOOD).encode()), {"Content-Encoding": name})
        assert (answer.status, answer.body["payload"]) == (201, GOOD["payload"])
    assert api.send("POST", "/v1/tasks", GOOD, {"Content-Encoding": "identity"}).status == 201


def test_an_unsupported_encoding_is_rejected_with_the_supported_encoding(api: Gateway) -> None:
    """Unsupported or multiple encodings return 415, and the error names the supported encoding."""
    for name in ("br", "deflate", "zstd", "gzip, gzip"):
        answer = sent(api, b"{}", {"Content-Encoding": name})
        assert repr(name) in reason(answer, 415, "encoding_unsupported", "Content-Encoding")
        assert answer.headers["Accept-Encoding"] == "gzip"
        assert answer.problem["errors"][0]["code"] == "unsupported"
    assert api.send("POST", "/v1/tasks", GOOD, {"Content-Encoding": "br"}).status == 415


def test_a_decompression_bomb_is_rejected(api: Gateway) -> None:
    """A body that would decompress beyond the size limit is refused."""
    bomb = gzip.compress(b" " * (MAX_BODY_BYTES + 1))
    assert len(bomb) < 10_000
    assert "5242880" in reason(sent(api, bomb, GZIP), 413, "body_too_large")
    payload = b'{"type":"report","payload":"' + b"x" * 1_000_000 + b'"}'
    assert sent(api, gzip.compress(payload), GZIP).status == 201


def test_an_invalid_or_incomplete_gzip_body_is_rejected(api: Gateway) -> None:
    """An invalid, incomplete or overlong gzip body is rejected, and the error says why."""
    whole = gzip.compress(json.dumps(GOOD).encode())
    assert "is not compressed with gzip" in reason(sent(api, b"{}", GZIP), 400, "body_unreadable")
    for data in (whole[:-5], whole + b"more"):
        assert "one whole gzip stream" in reason(sent(api, data, GZIP), 400, "body_unreadable")
    # This simulates a gateway that damages the body by decoding the body as text.
    spoilt = whole.decode("utf-8", "replace")
    said = reason(api.send("POST", "/v1/tasks", raw=spoilt, headers=GZIP), 400, "body_unreadable")
    assert "without 'Content-Type'" in said


def test_a_compressed_body_without_content_encoding_is_rejected(api: Gateway) -> None:
    """A compressed body without `Content-Encoding` is refused, and the error names the missing header."""
    whole = gzip.compress(json.dumps(GOOD).encode())
    for answer in (sent(api, whole), api.send("POST", "/v1/tasks", raw=whole.decode("utf-8", "replace"))):
        assert "'Content-Encoding: gzip'" in reason(answer, 400, "body_unreadable")


def test_a_body_that_is_not_utf_8_is_rejected_with_the_reason(api: Gateway) -> None:
    """A body with a byte order mark, in UTF-16 or with invalid bytes is rejected, and the error says why."""
    text = json.dumps(GOOD)
    for answer in (api.send("POST", "/v1/tasks", raw="\ufeff" + text), sent(api, b"\xef\xbb\xbf" + text.encode())):
        assert "byte order mark" in reason(answer, 400, "body_unreadable")
    for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32"):
        assert "send UTF-8" in reason(sent(api, text.encode(encoding)), 400, "body_unreadable")
    assert "is not UTF-8 at byte" in reason(sent(api, b'{"type": "\xe9"}'), 400, "body_unreadable")


def test_a_body_in_which_bytes_were_replaced_is_rejected(api: Gateway) -> None:
    """A body in which the gateway replaced bytes is refused, because its length differs from `Content-Length`."""
    data = b'{"type": "report", "name": "caf\xe9"}'
    spoilt = data.decode("utf-8", "replace")
    length = {"Content-Length": str(len(data))}
    assert "is not UTF-8" in reason(api.send("POST", "/v1/tasks", raw=spoilt, headers=length), 400, "body_unreadable")
    # A client that actually sends the replacement character is not refused.
    meant = {"Content-Length": str(len(spoilt.encode()))}
    assert api.send("POST", "/v1/tasks", raw=spoilt, headers=meant).body["name"] == "caf\ufffd"


@pytest.mark.parametrize(
    ("media_type", "said"),
    [
        ("application/json; charset=iso-8859-1", "'charset=iso-8859-1'"),
        ("application/json;odata.metadata=minimal", "'odata.metadata=minimal'"),
        ("application/json; charset=utf-8; version=1", "'version=1'"),
        ("application/vnd.api+json", "'application/vnd.api+json'"),
        ("application/problem+json", "'application/problem+json'"),
        ("application/merge-patch+json", "'application/merge-patch+json'"),
        ("text/plain", "'text/plain'"),
        ("json", "is not a media type"),
        ("", "is not a media type"),
    ],
)
def test_an_error_for_an_unsupported_media_type_names_the_type(api: Gateway, media_type: str, said: str) -> None:
    """An error for an unsupported media type names the refused type or parameter, and the accepted type."""
    answer = api.send("POST", "/v1/tasks", GOOD, {"Content-Type": media_type})
    text = reason(answer, 415, "media_type_unsupported", "Content-Type")
    assert said in text
    assert "application/json" in text
    assert api.listed() == []


@pytest.mark.parametrize(
    "media_type",
    [
        "application/json",
        "APPLICATION/JSON",
        "application/json; charset=utf-8",
        'application/json;charset="UTF-8"',
        "application/json ; charset = utf8",
        "application/json;",
    ],
)
def test_the_json_media_type_is_accepted_in_any_spelling(api: Gateway, media_type: str) -> None:
    """The media type is accepted in any case and with spaces, quotes or `charset=utf-8`."""
    assert api.send("POST", "/v1/tasks", GOOD, {"Content-Type": media_type}).status == 201


def test_a_change_may_be_a_merge_patch(api: Gateway) -> None:
    """PATCH accepts both media types for a merge patch, and refuses JSON Patch."""
    path = f"/v1/tasks/{api.create(GOOD)['id']}"
    for media_type in ("application/json", "application/merge-patch+json; charset=utf-8"):
        assert api.send("PATCH", path, {"name": media_type[:20]}, {"Content-Type": media_type}).status == 200
    answer = api.send("PATCH", path, raw="[]", headers={"Content-Type": "application/json-patch+json"})
    assert "JSON Patch" in reason(answer, 415, "media_type_unsupported", "Content-Type")
    assert answer.headers["Accept-Patch"] == "application/json, application/merge-patch+json"


def test_a_delete_with_fields_in_its_body_is_rejected(api: Gateway) -> None:
    """A DELETE with fields in its body is refused, and the error names the fields."""
    path = f"/v1/tasks/{api.create(GOOD)['id']}"
    answer = api.send("DELETE", path, {"reason": "why"})
    assert (answer.status, list(answer.faults)) == (422, ["reason"])
    assert api.send("GET", path).body["state"] == "scheduled"
    assert api.send("DELETE", path, {}).status == 204


def test_a_long_response_is_compressed_if_the_client_accepts_gzip(api: Gateway) -> None:
    """Responses larger than 1 KB are compressed if the client accepts gzip."""
    plain, packed = api.send("GET", "/v1/openapi.json"), api.send("GET", "/v1/openapi.json", headers=ACCEPTED)
    assert unpacked(packed) == plain.body
    assert len(packed.text) < len(plain.text) / 4
    assert plain.headers["Vary"] == packed.headers["Vary"] == "Accept-Encoding"
    assert plain.headers["ETag"] == packed.headers["ETag"]
    long = {"type": "report", "payload": "é" * 2_000}
    assert unpacked(api.send("POST", "/v1/tasks", long, ACCEPTED))["payload"] == long["payload"]


def test_a_short_response_is_not_compressed(api: Gateway) -> None:
    """A response smaller than 1 KB is not compressed, because compression would cost more than it saves."""
    answer = api.send("GET", "/v1/health", headers=ACCEPTED)
    assert not answer.is_base64
    assert "Content-Encoding" not in answer.headers


@pytest.mark.parametrize(
    ("accepted", "is_packed"),
    [
        ("gzip", True),
        ("br;q=1.0, gzip;q=0.8, *;q=0.1", True),
        ("*", True),
        ("GZIP", True),
        ("gzip;q=0", False),
        ("gzip;q=0.000, br", False),
        ("br, deflate", False),
        ("identity", False),
        ("gzipped", False),
        ("", False),
    ],
)
def test_only_clients_that_accept_gzip_get_compressed_responses(api: Gateway, accepted: str, is_packed: bool) -> None:  # noqa: FBT001 - a test parameter
    """A response is compressed only if `Accept-Encoding` allows gzip with a weight above zero."""
    answer = api.send("GET", "/v1/openapi.json", headers={"Accept-Encoding": accepted})
    assert ("Content-Encoding" in answer.headers) == is_packed == answer.is_base64


def test_a_compressed_problem_keeps_its_media_type(api: Gateway) -> None:
    """A long problem response is compressed, and its media type does not change."""
    answer = api.send("POST", "/v1/tasks", {f"field_{n}": n for n in range(50)}, ACCEPTED)
    assert (answer.status, answer.headers["Content-Type"]) == (422, "application/problem+json")
    assert len(unpacked(answer)["errors"]) == 20
