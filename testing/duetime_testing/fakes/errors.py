"""Creates errors like botocore's."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError

_STATUS = {"InternalServerError": 500, "ServiceUnavailable": 503, "InternalError": 500}


class Exceptions:
    """A client's `exceptions` attribute; the class for an error code is created on first access."""

    def __init__(self) -> None:
        self._classes: dict[str, type[ClientError]] = {}

    def __getattr__(self, code: str) -> type[ClientError]:
        if code.startswith("__"):
            raise AttributeError(code)
        if code not in self._classes:
            self._classes[code] = type(code, (ClientError,), {})
        return self._classes[code]

    def make(self, code: str, operation: str, message: str = "", **node_refs: Any) -> ClientError:  # noqa: ANN401 - any member
        """Create an error with a code and the response's other members."""
        response: Any = {
            "Error": {"Code": code, "Message": message},
            "ResponseMetadata": {"HTTPStatusCode": _STATUS.get(code, 400)},
            **node_refs,
        }
        made: type[ClientError] = getattr(self, code.rpartition(".")[2])
        return made(response, operation)
