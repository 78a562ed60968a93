"""HTTP endpoints: `PUT {url}?action={phase}`, with a limit on time and size, no redirects and no proxies."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import urllib3

from duetime.adapters.targets.destinations import Destination, DestinationRefused, find
from duetime.domain.attempts import Deferred, Ending, Succeeded, failure
from duetime.domain.limits import MAX_RESULT_BYTES
from duetime.domain.task import Phase
from duetime.domain.times import DAY, SECOND, to_iso

if TYPE_CHECKING:
    from urllib3.response import BaseHTTPResponse

    from duetime.domain.task import HttpTarget
    from duetime.ports.targets import Work

_CONNECT_SECONDS = 5.0
_CHUNK = 16_384
_OK = range(200, 300)
_ACCEPTED = 202
_CLIENT_ERRORS = range(400, 500)
_RETRIABLE = frozenset({408, 425, 429})
"""Client errors that time mends (Source: RFC 9110, RFC 8470, RFC 6585)."""


class AnswerTooLarge(ValueError):
    """The endpoint's answer is larger than a result may be."""


@dataclass(frozen=True, slots=True)
class HttpRunner:
    """Calls HTTP endpoints.

    Attributes:
        allowed: hosts that may be reached although they are not public.
    """

    allowed: frozenset[str]

    def run(self, target: HttpTarget, work: Work) -> Ending:
        """Call the endpoint; any answer but 2xx fails the attempt."""
        try:
            destination = find(target.url, self.allowed)
        except DestinationRefused as error:
            return failure("DestinationRefused", str(error), retriable=False)
        except (OSError, UnicodeError, ValueError) as error:
            return failure("HostUnknown", f"{target.url}: {error}")
        try:
            return self._call(destination, work)
        except AnswerTooLarge as error:
            return failure("AnswerTooLarge", str(error), retriable=False)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            return failure(type(error).__name__, f"{destination.host}: {error}")

    def _call(self, destination: Destination, work: Work) -> Ending:
        seconds = float(work.task.timeout_seconds)
        until = time.monotonic() + seconds
        with _pool(destination, seconds) as pool:
            answer = pool.request(
                "PUT",
                f"{destination.path}{'&' if '?' in destination.path else '?'}action={work.phase}",
                body=_body(work),
                headers=_headers(destination, work),
                redirect=False,
                retries=False,
                preload_content=False,
            )
            return _ending(answer, _read(answer, until), work.phase)


def _pool(destination: Destination, seconds: float) -> urllib3.HTTPConnectionPool:
    timeout = urllib3.Timeout(connect=min(_CONNECT_SECONDS, seconds), total=seconds)
    if destination.scheme == "http":
        return urllib3.HTTPConnectionPool(destination.address, destination.port, timeout=timeout)
    return urllib3.HTTPSConnectionPool(
        destination.address,
        destination.port,
        timeout=timeout,
        server_hostname=destination.host,
        assert_hostname=destination.host,
    )


def _headers(destination: Destination, work: Work) -> dict[str, str]:
    task = work.task
    return {
        "Host": f"{_bracketed(destination.host)}:{destination.port}",
        "Content-Type": "application/json",
        "User-Agent": "duetime",
        "Idempotency-Key": task.id.text,
        "Duetime-Attempt": str(task.attempt),
        "Duetime-Fence": str(task.fence),
        "Duetime-Deadline": to_iso(work.deadline),
    }


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _body(work: Work) -> bytes:
    """The same facts as a Python handler's context; the payload stands in it as it came."""
    task = work.task
    facts = {
        "task_id": task.id.text,
        "type": task.type,
        "attempt": task.attempt,
        "fence": task.fence,
        "deadline": to_iso(work.deadline),
    }
    return json.dumps(facts).encode()[:-1] + b', "payload": ' + work.payload + b"}"


def _read(answer: BaseHTTPResponse, until: float) -> bytes:
    """The answer's body, within its limits of size and time."""
    data = bytearray()
    for chunk in answer.stream(_CHUNK):
        data += chunk
        if len(data) > MAX_RESULT_BYTES:
            raise AnswerTooLarge(f"the answer has more than {MAX_RESULT_BYTES} bytes")
        if time.monotonic() > until:
            raise TimeoutError("the answer did not end in time")
    return bytes(data)


def _ending(answer: BaseHTTPResponse, data: bytes, phase: Phase) -> Ending:
    status = answer.status
    if status == _ACCEPTED and phase is Phase.RUN:
        return Deferred()
    if status in _OK:
        return Succeeded(_json(data))
    retriable = status in _RETRIABLE or status not in _CLIENT_ERRORS
    retriable = retriable and status >= _CLIENT_ERRORS.start  # a redirect is not followed
    text = data[:200].decode("utf-8", "replace")
    wait = _retry_after(answer.headers.get("Retry-After", ""))
    return failure(f"Http{status}", f"the endpoint answered {status}: {text}", retriable=retriable, wait_at_least=wait)


def _json(data: bytes) -> bytes:
    """The result: the answer if it is JSON, else its text as a JSON string, or null if there is none."""
    if not data.strip():
        return b"null"
    try:
        return _compact(json.loads(data))
    except (ValueError, RecursionError):
        return _compact(data.decode("utf-8", "replace"))


def _compact(value: object) -> bytes:
    # What JSON cannot hold, NaN and numbers beyond a float among it, is refused here.
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()


def _retry_after(text: str) -> int:
    """Milliseconds of a `Retry-After` in whole seconds; other forms are not heeded."""
    return min(int(text) * SECOND, DAY) if text.isascii() and text.isdigit() and len(text) < len("1000000") else 0
