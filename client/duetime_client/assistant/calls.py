"""Calls a tool: converts arguments to a request, and the response or error to text of limited length."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from duetime_client.assistant.tools import BODY
from duetime_client.errors import ApiError, ClientError, NotJson
from duetime_client.io_operations import Request
from duetime_client.problems import document_of
from duetime_client.session import IDEMPOTENCY_KEY, segment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime_client.assistant.tools import OperationTool, Parameter
    from duetime_client.io_runners import Runner

MAX_CHARACTERS = 40_000
"""Maximum length of a result in characters, about ten thousand tokens of an assistant's context."""
_NOT_SEGMENTS = frozenset({"", ".", ".."})
"""Path segments that would address another operation."""


class ArgumentsInvalid(ClientError):
    """The arguments of a call do not match the tool's schema."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a call: text (JSON, unless truncated), and whether it is an error."""

    text: str
    is_error: bool = False


def call(runner: Runner, tool: OperationTool, arguments: Mapping[str, Any]) -> Outcome:
    """Call an operation; errors are returned as an outcome instead of being raised."""
    try:
        path, query, headers = _request_of(tool, arguments)
        request = Request(tool.method, path, document_of, query=query, body=arguments.get(BODY), headers=headers)
        document = runner.run(runner.session.send(request))
    except (NotJson, RecursionError) as error:
        # The body has a number or a nesting depth that JSON does not support.
        return Outcome(json.dumps(_problem("arguments_invalid", f"{BODY}: {error}")), is_error=True)
    except ClientError as error:
        return Outcome(json.dumps(problem_of(error), ensure_ascii=False), is_error=True)
    return Outcome(bounded(document))


def problem_of(error: ClientError) -> dict[str, Any]:
    """Convert an error to an RFC 9457 problem."""
    if isinstance(error, ApiError):
        return {key: value for key, value in asdict(error.problem).items() if value}
    if isinstance(error, ArgumentsInvalid):
        return _problem("arguments_invalid", str(error), errors=[{"field": error.field, "reason": error.reason}])
    return _problem("request_failed", str(error))


def tool_unknown(name: str, known: Mapping[str, OperationTool], *, allow_writes: bool) -> Outcome:
    """Return the error for a call of an unknown tool."""
    matches = get_close_matches(name, known)
    detail = f"there is no tool {name!r}" + (f"; did you mean {' or '.join(matches)}?" if matches else "")
    if not allow_writes:
        detail += "; this server only reads: tools that change something need `duetime mcp --allow-writes`"
    return Outcome(json.dumps(_problem("tool_unknown", detail)), is_error=True)


def bounded(document: object, most: int = MAX_CHARACTERS) -> str:
    """Format a response as JSON of limited length; a list that is too long is cut to its first entries."""
    text = json.dumps(document, ensure_ascii=False)
    if len(text) <= most:
        return text
    shortened = _first_entries(document, most) if isinstance(document, dict) else None
    return shortened or f"{text[:most]}\n… (cut: {most} of {len(text)} characters)"


def _first_entries(page: dict[str, Any], most: int) -> str | None:
    """Cut a page to the entries that fit; return `None` if not even one entry fits."""
    name = max(page, key=lambda key: len(page[key]) if isinstance(page[key], list) else -1, default=None)
    if name is None or not isinstance(page[name], list):
        return None
    # `next_token` is left out, because it would continue after the omitted entries.
    rest = {key: value for key, value in page.items() if key not in {name, "next_token"}}
    shown, total = 0, len(page[name])
    room = most - len(json.dumps(rest, ensure_ascii=False)) - 200
    for entry in page[name]:
        room -= len(json.dumps(entry, ensure_ascii=False)) + 2
        if room < 0:
            break
        shown += 1
    if not shown:
        return None
    note = f"the first {shown} of {total} entries: ask for fewer (limit), or for a narrower filter"
    return json.dumps({name: page[name][:shown], **rest, "truncated": note}, ensure_ascii=False)


def _request_of(tool: OperationTool, arguments: Mapping[str, Any]) -> tuple[str, list[tuple[str, str]], dict[str, str]]:
    """Return the path, query and headers of a request.

    Raises:
        ArgumentsInvalid: An argument is unknown, missing, or has an unsupported type.
    """
    known = [*(each.name for each in tool.parameters), *([BODY] if tool.body is not None else [])]
    for name in arguments:
        if name not in known:
            raise ArgumentsInvalid(name, f"is not an argument of {tool.name}; it takes: {', '.join(known) or 'none'}")
    path, query, headers = tool.path, list[tuple[str, str]](), dict[str, str]()
    for each in tool.parameters:
        value = arguments.get(each.name)
        if value is None:
            if each.is_required:
                raise ArgumentsInvalid(each.name, "is required")
        elif each.place == "path":
            path = path.replace(f"{{{each.sent_as}}}", _segment(each, value))
        elif each.place == "query":
            values = value if isinstance(value, list) else [value]
            query += [(each.sent_as, _text(each, one)) for one in values]
        else:
            headers[each.sent_as] = _text(each, value)
    if any(each.sent_as == IDEMPOTENCY_KEY for each in tool.parameters):
        # With an idempotency key, the request can be retried safely if the response is lost.
        headers.setdefault(IDEMPOTENCY_KEY, str(uuid4()))
    return path, query, headers


def _segment(parameter: Parameter, value: object) -> str:
    text = _text(parameter, value)
    if text in _NOT_SEGMENTS:
        raise ArgumentsInvalid(parameter.name, f"{text!r} is not a name")
    return segment(text)


def _text(parameter: Parameter, value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    raise ArgumentsInvalid(parameter.name, "should be text or a number")


def _problem(code: str, detail: str, **more: object) -> dict[str, Any]:
    return {"code": code, "detail": detail, **more}
