"""A fuzzer that sends hostile requests to the api function and lists every broken promise."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from duetime.contract.http.problems import MEDIA_TYPE
from duetime.contract.openapi.document import OPERATIONS
from tests.hostile.corpus import Corpus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.functions.api.gateway import Answer
    from tests.hostile.corpus import Hostile
    from tests.hostile.world import Api

A_WORLD = 1_000
"""The number of requests that use one set of tables before it is replaced."""
_REFUSED = 400
_OURS = 500
OF_TARGETS = frozenset({"target_unreachable", "target_timeout"})
"""The codes of refusals that a target causes, and that are documented with the statuses 502 and 504."""
_PATHS = [(one, re.compile(re.sub(r"\{\w+\}", "[^/]+", one.path))) for one in OPERATIONS]


class Grounds(Protocol):
    """The environment in which a fuzzer runs."""

    says_why: bool
    """Whether every refusal comes from the function; a real gateway refuses some requests itself."""

    @property
    def api(self) -> Api:
        """The client that sends requests."""

    def fresh_world(self) -> Mapping[str, Sequence[str]]:
        """Create a few resources of every kind, and return their identifiers by parameter name."""

    def begin(self) -> None:
        """Prepare for the next request, which is about to be sent."""

    def written(self) -> Sequence[str]:
        """The writes that the latest request made although it was refused."""


@dataclass
class Fuzzer:
    """The results so far.

    Attributes:
        answers: the number of responses by status.
        codes: the number of problems by code.
        hit: the number of requests by operation, without requests that match no operation.
        broken: the requests whose response or effect breaks a promise, each with the reason.
    """

    grounds: Grounds
    answers: Counter[int] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    hit: Counter[str] = field(default_factory=Counter)
    broken: list[tuple[str, Hostile]] = field(default_factory=list)

    def lay(self, count: int, seed: int = 0) -> None:
        """Send this many requests."""
        for first in range(0, count, A_WORLD):
            known = self.grounds.fresh_world()
            for request in islice(Corpus(seed * 1_000_003 + first, known), min(A_WORLD, count - first)):
                self.send(request)

    def send(self, request: Hostile) -> Answer | None:
        """Send one request, and check its response and effects."""
        self.grounds.begin()
        try:
            answer = self.grounds.api.send(
                request.method,
                request.path,
                None,
                request.headers,
                query=request.query,
                raw=request.raw,
                is_base64=request.is_base64,
            )
        except Exception as error:  # noqa: BLE001 - whatever escapes the function is what is looked for
            self.answers[_OURS] += 1
            self.broken.append((f"raised {error!r}", request))
            return None
        self.answers[answer.status] += 1
        self.hit.update(one.id for one, path in _PATHS if one.method == request.method and path.fullmatch(request.path))
        if (wrong := self._wrong(answer, is_head=request.method == "HEAD")) is not None:
            self.broken.append((wrong, request))
        return answer

    def _wrong(self, answer: Answer, *, is_head: bool) -> str | None:
        if answer.status < _REFUSED:
            return None
        written = self.grounds.written()
        if answer.headers.get("Content-Type") != MEDIA_TYPE:
            by_gateway = not self.grounds.says_why and answer.status < _OURS and not written
            return None if by_gateway else f"{answer.status} is no problem document, wrote {written}"
        if is_head:
            if answer.status >= _OURS:
                return f"{answer.status} to HEAD"
            return f"refused, yet wrote {written}" if written else None
        problem = json.loads(answer.text)
        answer.text.encode()
        self.codes[problem["code"]] += 1
        if answer.status >= _OURS and problem["code"] not in OF_TARGETS:
            return f"{answer.status} {problem['code']}"
        if problem["code"] in {"fields_invalid", "parameters_invalid"} and not problem["errors"]:
            return "names no field"
        return f"refused, yet wrote {written}" if written else None
