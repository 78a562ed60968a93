"""Serves the files of the web console, with headers that limit the page to its own scripts and API."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from duetime.environment_variables import Variable

from .files import File, read_files

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aws_lambda_powertools.utilities.typing import LambdaContext

FILES = read_files(Path(__file__).parent / "static")
PREFIX = "/console"
INDEX = "index.html"
CONFIG = "config.json"
_FOR_EVER = "public, max-age=31536000, immutable"
_ASK_AGAIN = "no-cache"


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 - Lambda's signature
    """Answer one request for a file."""
    name = event["rawPath"].partition(PREFIX)[2]
    if name == f"/{CONFIG}":
        headers = {"Content-Type": "application/json", "Cache-Control": _ASK_AGAIN}
        config = {"sign_in": _public(sign_in()), "codec_endpoint": codec_endpoint()}
        return _answer(HTTPStatus.OK, headers, json.dumps(config).encode())
    if not name:
        # The location is relative, like the page's own links, because only the browser knows the path's prefix.
        return _answer(HTTPStatus.FOUND, {"Location": f"{PREFIX.removeprefix('/')}/{INDEX}"})
    file = FILES.get(name.removeprefix("/") or INDEX)
    if file is None:
        return _answer(HTTPStatus.NOT_FOUND, {"Content-Type": "text/plain; charset=utf-8"}, b"There is no such file.")
    return _file(file, event.get("headers") or {})


def _file(file: File, asked: Mapping[str, str]) -> dict[str, Any]:
    headers = {
        "Content-Type": file.content_type,
        "ETag": file.etag,
        # A file with a hash in its name never changes.
        "Cache-Control": _FOR_EVER if file.is_hashed else _ASK_AGAIN,
        "Vary": "Accept-Encoding",
    }
    if file.etag in asked.get("if-none-match", ""):
        return _answer(HTTPStatus.NOT_MODIFIED, headers)
    if "gzip" in asked.get("accept-encoding", ""):
        return _answer(HTTPStatus.OK, {**headers, "Content-Encoding": "gzip"}, file.packed)
    return _answer(HTTPStatus.OK, headers, file.content)


def _answer(status: HTTPStatus, headers: Mapping[str, str], content: bytes = b"") -> dict[str, Any]:
    return {
        "statusCode": status.value,
        "headers": {**_protection(), **headers},
        "body": b64encode(content).decode(),
        "isBase64Encoded": True,
    }


def sign_in() -> Mapping[str, Any]:
    """Settings for sign-in with an identity provider; empty if the deployment has no sign-in."""
    found: Mapping[str, Any] = json.loads(os.environ.get(Variable.SIGN_IN, "") or "{}")
    return found


def codec_endpoint() -> str:
    """Address of the endpoint that decrypts payloads for people; empty if the deployment has no such endpoint."""
    return os.environ.get(Variable.CODEC_ENDPOINT, "")


def _public(settings: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The sign-in settings that the page needs. These settings contain no secret, because a public client has none."""
    return {name: settings[name] for name in ("issuer", "client_id", "audience")} if settings else None


def content_security_policy(watch_url: str, others: Sequence[str] = (), upload_url: str = "") -> str:
    """The policy that lets the page use its own files, the API, live updates, other given addresses, and uploads.

    Uploads are limited to addresses that begin with `upload_url`, because other buckets have the same origin.
    """
    addresses = [urlsplit(each) for each in (watch_url, *others)]
    allowed = [
        "'self'",
        *(f"{each.scheme}://{each.netloc}" for each in addresses if each.netloc),
        *filter(None, [upload_url]),
    ]
    return (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';"
        f" connect-src {' '.join(allowed)}; base-uri 'none'; form-action 'none'; frame-ancestors 'none';"
        " require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _protection() -> dict[str, str]:
    settings = sign_in()
    provider = (settings["issuer"], *settings["origins"]) if settings else ()
    return {
        "Content-Security-Policy": content_security_policy(
            os.environ.get(Variable.WATCH_URL, ""),
            (*provider, codec_endpoint()),
            os.environ.get(Variable.UPLOAD_URL, ""),
        ),
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }
