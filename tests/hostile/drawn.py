"""Draws valid and invalid requests from the served OpenAPI document, and checks the responses against the document."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from jsonschema import Draft202012Validator  # type: ignore[import-untyped] # the package has no types
from schemathesis import GenerationMode
from schemathesis.core import NotSet
from schemathesis.core.result import Ok

from duetime.contract.openapi.document import document
from tests.hostile.corpus import Hostile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from schemathesis import Case
    from schemathesis.schemas import APIOperation

    from tests.functions.api.gateway import Answer
    from tests.hostile.fuzz import Fuzzer

MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
_A_WORLD = 15
"""The number of operations that use one set of tables before it is replaced."""
_SUCCESS = range(200, 300)
_OF_THE_GATEWAY = frozenset({400, 404, 405, 413, 415})
"""The statuses that are possible on any path, for requests that no longer match the operation."""


class Drawn:
    """Draws requests of every operation, and checks the responses against the document."""

    def __init__(self, fuzzer: Fuzzer) -> None:
        self._fuzz = fuzzer
        self._document = document()
        self._validators: dict[str, Draft202012Validator] = {}

    def lay(self, examples: int, number: int = 0) -> None:
        """Send about this many requests for each operation and mode."""
        known: Mapping[str, Sequence[str]] = {}
        for index, operation in enumerate(self._operations()):
            if index % _A_WORLD == 0:
                known = self._fuzz.grounds.fresh_world()
            for mode in MODES:
                self._draw(operation, mode, examples, number, known)

    def _operations(self) -> Iterator[APIOperation[Any, Any, Any, Any]]:
        schema = schemathesis.openapi.from_dict(self._document)
        for result in schema.get_all_operations():
            assert isinstance(result, Ok)
            yield result.ok()

    def _draw(
        self,
        operation: APIOperation[Any, Any, Any, Any],
        mode: GenerationMode,
        examples: int,
        number: int,
        known: Mapping[str, Sequence[str]],
    ) -> None:
        sent = 0

        @seed(number)
        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(operation.as_strategy(generation_mode=mode))
        def send(case: Case[Any]) -> None:
            nonlocal sent
            sent += 1
            # Every second request is for an existing resource.
            request = _hostile(case, known if sent % 2 else {})
            if (answer := self._fuzz.send(request)) and (wrong := self._wrong(operation, answer)):
                self._fuzz.broken.append((wrong, request))

        # An operation without parameters has no invalid requests.
        with suppress(Unsatisfiable):
            send()

    def _wrong(self, operation: APIOperation[Any, Any, Any, Any], answer: Answer) -> str | None:
        responses = operation.definition.raw["responses"]
        label = operation.definition.raw["operationId"]
        if str(answer.status) not in responses:
            return None if answer.status in _OF_THE_GATEWAY else f"{label} answers an undocumented {answer.status}"
        content = responses[str(answer.status)].get("content", {}).get("application/json")
        if answer.status not in _SUCCESS or content is None:
            return None
        validator = self._validator(content["schema"])
        error = next(validator.iter_errors(json.loads(answer.text)), None)
        return error and f"{label} answers what its schema does not allow: {error.json_path} {error.message[:200]}"

    def _validator(self, schema: Mapping[str, Any]) -> Draft202012Validator:
        name = json.dumps(schema, sort_keys=True)
        if name not in self._validators:
            whole = {**schema, "components": self._document["components"]}
            self._validators[name] = Draft202012Validator(whole)
        return self._validators[name]


def _hostile(case: Case[Any], known: Mapping[str, Sequence[str]]) -> Hostile:
    """A drawn request, in the form in which the gateway would pass it on."""
    parameters = {**(case.path_parameters or {}), **{name: ids[0] for name, ids in known.items()}}

    def named(match: re.Match[str]) -> str:
        return quote(str(parameters.get(match[1], match[1])), safe="", errors="replace")

    headers = {str(name): str(value) for name, value in (case.headers or {}).items()}
    if case.media_type:
        headers.setdefault("Content-Type", case.media_type)
    pairs = [(str(name), _plain(value)) for name, value in (case.query or {}).items()]
    query = urlencode(pairs, doseq=True, errors="replace")
    return Hostile(case.method, re.sub(r"\{(\w+)\}", named, case.path), query, headers, _raw(case.body))


def _plain(value: object) -> object:
    """A parameter's value; a nested value is written as JSON."""
    return json.dumps(value) if isinstance(value, dict | bool) else value


def _raw(body: Any) -> str | None:  # noqa: ANN401 - whatever was drawn
    if isinstance(body, NotSet):
        return None
    if isinstance(body, bytes):
        return body.decode("utf-8", "replace")
    return body if isinstance(body, str) else json.dumps(body)
