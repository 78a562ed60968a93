"""Calls that authenticate with a secret."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from duetime.adapters.targets.credentials import CredentialRefused
from duetime.adapters.targets.http_messages import NoResponse
from duetime.adapters.targets.secret_formats import CredentialUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.adapters.targets.credentials import Credential, Credentials
    from duetime.adapters.targets.http_messages import Call, CallAuth, HttpResponse, Reply

_UNAUTHORIZED = 401
_REFUSED = "SecretRefused"


class Sender(Protocol):
    """Makes one request."""

    def __call__(self, call: Call, *, credential: Credential | None = None) -> HttpResponse:
        """Make a call with its credentials."""
        ...


def authenticated_reply(
    credentials: Callable[[], Credentials] | None, call: Call, auth: CallAuth, send: Sender
) -> Reply:
    """The reply to a call with a secret, which is read once more if the endpoint answers 401.

    A request with this response was not carried out (Source: RFC 9110, 15.5.2), so it may be sent again.
    """
    if credentials is None:
        return NoResponse(_REFUSED, "this function may read no secrets", retriable=False)
    kept = credentials()

    def send_for_token(request: Call) -> HttpResponse:
        try:
            return send(request)
        except Exception as error:  # noqa: BLE001 - its message may contain the URL, which is part of the secret
            raise CredentialUnavailable(f"no token for {auth.secret!r}: {type(error).__name__}") from None

    try:
        used = kept.of(call, auth, send_for_token)
        answer = send(call, credential=used)
        if answer.status == _UNAUTHORIZED and (renewed := kept.renewed(call, auth, used, send_for_token)):
            answer = send(call, credential=renewed)
    except CredentialRefused as error:
        return NoResponse(_REFUSED, str(error), retriable=False)
    except CredentialUnavailable as error:
        return NoResponse("SecretUnavailable", str(error))
    return answer
