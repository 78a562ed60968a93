"""Tests of the deployment's OpenAPI document, and of the headers for deprecated operations."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from duetime.contract.health_and_openapi import HEALTH
from duetime.environment_variables import Variable
from functions.api import health_and_openapi, routing
from tests.functions.api.gateway import Gateway

if TYPE_CHECKING:
    from collections.abc import Callable

ARN = "arn:aws:sts::123456789012:assumed-role/Reports/i-0abc"
CALLERS: dict[str, dict[str, Any]] = {
    "none": {},
    "iam": {"iam": {"userArn": ARN}},
    "jwt": {"jwt": {"claims": {"sub": "ann"}}},
}


@pytest.mark.parametrize(
    ("authentication", "security"), [("none", []), ("iam", [{"sigv4": []}]), ("jwt", [{"bearer": []}])]
)
def test_the_document_names_only_this_deployments_authentication(
    environ: dict[str, str], compose: Callable[[], None], authentication: str, security: object
) -> None:
    """The document names only this deployment's authentication, and a relative server address."""
    environ[Variable.AUTHENTICATION] = authentication
    compose()
    health_and_openapi._document.cache_clear()
    document = Gateway(authorizer=CALLERS[authentication]).send("GET", "/v1/openapi.json").body
    health_and_openapi._document.cache_clear()
    assert (document["security"], document["servers"][0]["url"]) == (security, "..")


def test_only_responses_of_deprecated_operations_have_the_deprecation_headers(
    api: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only responses of deprecated operations have the deprecation headers."""
    going = replace(HEALTH, deprecated=date(2027, 3, 1), sunset=date(2028, 3, 1))
    monkeypatch.setitem(routing._HANDLERS, going, routing._HANDLERS[HEALTH])
    monkeypatch.setattr(routing, "operation_at", lambda _method, _path: (going, {}))
    answer = api.send("GET", "/v1/health")
    assert answer.headers["Deprecation"] == "@1803859200"
    assert answer.headers["Sunset"] == "Wed, 01 Mar 2028 00:00:00 GMT"
    monkeypatch.undo()
    assert "Deprecation" not in api.send("GET", "/v1/health").headers
