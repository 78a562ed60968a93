"""Tests the tools that `duetime mcp` offers for the API's operations, with an MCP client and the real API."""

from __future__ import annotations

import json
import re
import sys
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from duetime.contract.openapi.document import OPERATIONS, document
from duetime_client.assistant.calls import bounded, call
from duetime_client.assistant.tools import tools_of
from duetime_client.commands.clock import Clock
from duetime_client.commands.connection import Deployment as Chosen
from duetime_client.commands.connection import runner_of
from tests.client.test_worker import server as server_of_the_api

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp import Client
    from mcp_types import CallToolResult, Tool
    from typer.testing import Result

    from duetime_client.assistant.tools import OperationTool
    from tests.client.api_server import ApiServer
    from tests.client.deployment import Deployment

server = server_of_the_api
R = TypeVar("R")
ID = "01M7YJJ6RJ000VK12BGKK15FQ0"
LEFT_OUT = {
    *("acquire_leases", "renew_lease", "complete_lease", "fail_lease", "release_lease"),
    *("acknowledge_lease_pause", "acknowledge_lease_cancel", "create_watch_ticket"),
    *("list_lease_steps", "put_lease_step"),
    *("create_api_key", "list_api_keys", "revoke_api_key"),
    *("create_task_link", "list_task_links", "delete_task_link", "get_task_link", "use_task_link"),
    *("report_outcome", "report_heartbeat", "report_progress", "get_api_index", "get_open_api_document"),
    *("preview_task", "list_signing_secrets"),
}
"""Operations that are not tools, because only workers need them, they expose secrets, or their schemas are too long.
"""


@cache
def _tools(*, allow_writes: bool) -> dict[str, OperationTool]:
    return tools_of(document(), allow_writes=allow_writes)


def _with(url: str, act: Callable[[Client], Awaitable[R]], *, allow_writes: bool = True) -> R:
    """Run a test with a client of an MCP server in this process."""
    # Every pytest-xdist process collects these tests, but only one process runs them, and the imports take a second.
    from mcp import Client  # noqa: PLC0415 - see above

    from duetime_client.assistant.server import server_of  # noqa: PLC0415 - see above

    async def run() -> R:
        with runner_of(Chosen(url), Clock(sleep=lambda _: None)) as runner:
            tools = _tools(allow_writes=allow_writes)
            async with Client(server_of(runner, tools, allow_writes=allow_writes)) as client:
                return await act(client)

    return anyio.run(run)


def _called(url: str, name: str, arguments: dict[str, Any], *, allow_writes: bool = True) -> tuple[bool, Any]:
    """Return whether a call is an error, and the returned JSON."""

    async def act(client: Client) -> CallToolResult:
        return await client.call_tool(name, arguments)

    result = _with(url, act, allow_writes=allow_writes)
    (content,) = result.content
    return bool(result.is_error), json.loads(content.text)  # type: ignore[union-attr]  # text content


async def _listed(client: Client) -> list[Tool]:
    return (await client.list_tools()).tools


def test_every_operation_is_a_tool_and_only_read_only_tools_are_default() -> None:
    """Tools have the client's method names; by default, only tools that the API declares as read-only are offered."""
    names = {re.sub("[A-Z]", lambda each: f"_{each[0].lower()}", one.id): one for one in OPERATIONS}
    assert set(_tools(allow_writes=True)) == set(names) - LEFT_OUT
    safe = {name for name, operation in names.items() if operation.is_safe}
    assert set(_tools(allow_writes=False)) == safe - LEFT_OUT
    assert {"list_tasks", "explain_task", "preview_schedule", "query_task"} <= set(_tools(allow_writes=False))
    # An assistant reads all tool descriptions before it does anything.
    assert sum(len(json.dumps(tool.input_schema)) for tool in _tools(allow_writes=False).values()) < 30_000


def test_tools_are_described_by_the_openapi_document(server: ApiServer) -> None:
    """Each tool has a title, a description, hints, and a valid schema without external references."""
    listed = {tool.name: tool for tool in _with(server.url, _listed)}
    assert set(listed) == set(_tools(allow_writes=True))
    for tool in listed.values():
        assert tool.title
        assert tool.description
        Draft202012Validator.check_schema(tool.input_schema)
        text = json.dumps(tool.input_schema)
        assert set(re.findall(r'"\$ref": "#/\$defs/([^"]+)"', text)) <= set(tool.input_schema.get("$defs", {}))
        assert "#/components" not in text
    assert listed["list_tasks"].annotations is not None
    assert listed["list_tasks"].annotations.read_only_hint
    assert listed["cancel_task"].annotations is not None
    assert listed["cancel_task"].annotations.destructive_hint
    state = listed["list_tasks"].input_schema["properties"]["state"]
    Draft202012Validator(state).validate(["failed"])
    body = listed["create_task"].input_schema
    assert (body["required"], body["additionalProperties"]) == (["body"], False)
    assert not list(Draft202012Validator(body).iter_errors({"body": {"type": "mail", "delay_seconds": 5}}))
    assert list(Draft202012Validator(body).iter_errors({"body": {"type": "mail", "dealy_seconds": 5}}))


def test_a_task_is_created_found_and_cancelled_with_tools(server: ApiServer) -> None:
    """Arguments become the path, query, headers and body of a request; the result is the API's JSON."""
    body = {"type": "mail", "delay_seconds": 3600, "tags": {"team": "dba"}}
    error, made = _called(server.url, "create_task", {"body": body, "idempotency_key": "k"})
    assert (error, made["state"]) == (False, "scheduled")
    assert _called(server.url, "create_task", {"body": body, "idempotency_key": "k"})[1]["id"] == made["id"]
    _, page = _called(server.url, "list_tasks", {"state": ["scheduled"], "tag": ["team:dba"], "limit": 5})
    assert [task["id"] for task in page["tasks"]] == [made["id"]]
    error, refused = _called(server.url, "cancel_task", {"task_id": made["id"], "if_match": '"999"'})
    assert (error, refused["status"], refused["code"]) == (True, 412, "version_mismatch")
    assert _called(server.url, "cancel_task", {"task_id": made["id"]})[1]["state"] == "cancelled"


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("get_task", {"task_id": ID}, "task_not_found"),
        ("get_task", {}, "task_id: is required"),
        ("get_task", {"task_id": ""}, "task_id: '' is not a name"),
        ("get_schedule", {"name": ".."}, "name: '..' is not a name"),
        ("get_task", {"task_id": {"id": ID}}, "task_id: should be text or a number"),
        ("get_task", {"task_id": "../../v1/locks"}, "parameters_invalid|task_not_found|path_not_found"),
        ("get_task", {"id": ID}, "id: is not an argument of get_task; it takes: task_id"),
        ("list_tasks", {"state": "go"}, "state"),
        ("list_tasks", {"limit": 1e30}, "limit"),
        ("list_tasks", {"limit": [[1]]}, "limit: should be text or a number"),
        ("create_task", {}, "body"),
        ("create_task", {"body": {"type": "mail", "dealy_seconds": 5}}, "delay_seconds"),
        ("create_task", {"body": "not an object"}, "body"),
        ("create_task", {"body": {"type": "mail"}, "idempotency_key": "né"}, "Idempotency-Key"),
        ("lst_tasks", {}, "did you mean list_tasks"),
        ("", {}, "there is no tool"),
    ],
)
def test_an_invalid_tool_call_returns_a_problem(
    server: ApiServer, name: str, arguments: dict[str, Any], told: str
) -> None:
    """A wrong call returns a problem that has a code and names the argument or field, without a traceback."""
    error, problem = _called(server.url, name, arguments)
    assert error
    assert re.search(told, json.dumps(problem, ensure_ascii=False)), problem
    assert problem["code"]
    assert "Traceback" not in json.dumps(problem)


def test_a_tool_argument_that_json_cannot_represent_is_rejected() -> None:
    """An argument that JSON cannot represent is refused before anything is sent."""
    with runner_of(Chosen("http://127.0.0.1:1"), Clock()) as runner:
        made = call(runner, _tools(allow_writes=True)["create_task"], {"body": {"payload": float("nan")}})
    assert made.is_error
    assert json.loads(made.text)["code"] == "arguments_invalid"


def test_a_read_only_server_rejects_tools_that_change_something(server: ApiServer) -> None:
    """A tool that changes data is not listed; calling the tool sends nothing and returns the option that allows it."""
    assert "create_task" not in {tool.name for tool in _with(server.url, _listed, allow_writes=False)}
    error, problem = _called(server.url, "create_task", {"body": {"type": "mail"}}, allow_writes=False)
    assert (error, problem["code"]) == (True, "tool_unknown")
    assert "--allow-writes" in problem["detail"]
    assert _called(server.url, "list_tasks", {}, allow_writes=False)[1]["tasks"] == []


def test_an_unresponsive_api_is_reported_and_the_server_continues(server: ApiServer) -> None:
    """If the API does not respond, the server reports an error and continues, and the next call can succeed."""
    server.dead = True

    async def act(client: Client) -> tuple[CallToolResult, CallToolResult]:
        lost = await client.call_tool("get_health", {})
        server.dead = False
        return lost, await client.call_tool("get_health", {})

    lost, found = _with(server.url, act)
    problem = json.loads(lost.content[0].text)  # type: ignore[union-attr]  # text content
    assert (lost.is_error, problem["code"], found.is_error) == (True, "request_failed", False)
    assert "cannot reach" in problem["detail"]


def test_a_long_list_keeps_its_first_entries_without_a_token() -> None:
    """A long list is cut and loses its token, which would skip the omitted entries; other long strings are cut, too."""
    page = {"tasks": [{"id": str(number), "payload": "x" * 100} for number in range(100)], "next_token": "t"}
    assert json.loads(bounded(page)) == page
    shown = json.loads(bounded(page, 2_000))
    assert len(bounded(page, 2_000)) <= 2_000
    assert shown["tasks"] == page["tasks"][: len(shown["tasks"])]
    assert 5 < len(shown["tasks"]) < 100
    assert "next_token" not in shown
    assert "of 100 entries" in shown["truncated"]
    for document_of_one in ({"result": "x" * 5_000}, {"tasks": [{"payload": "x" * 5_000}]}, "x" * 5_000):
        text = bounded(document_of_one, 2_000)
        assert text.startswith(json.dumps(document_of_one)[:2_000])
        assert len(text) < 2_100


def test_the_command_requires_the_address_of_a_duetime_api(
    duetime: Callable[..., Result], deployment: Deployment
) -> None:
    """If the address does not belong to a duetime API, the command reports this before it serves."""
    result = duetime("mcp")
    assert (result.exit_code, result.stdout) == (1, "")
    assert deployment.received[0].path.endswith("/v1/openapi.json")
    assert result.stderr.startswith("error: ")


@pytest.mark.slow
def test_the_mcp_command_serves_on_standard_streams(server: ApiServer) -> None:
    """An assistant can start the command and, over its standard streams, list and call the read-only tools."""
    from mcp import Client, StdioServerParameters  # noqa: PLC0415 - as in `_with`

    async def run() -> tuple[set[str], str]:
        code = "from duetime_client.commands.app import app; app()"
        command = StdioServerParameters(command=sys.executable, args=["-c", code, "mcp", "--url", server.url])
        async with Client(command) as client:
            names = {tool.name for tool in await _listed(client)}
            (content,) = (await client.call_tool("get_health", {})).content
            return names, content.text  # type: ignore[union-attr]  # text content

    names, text = anyio.run(run)
    assert names == set(_tools(allow_writes=False))
    assert json.loads(text)["status"] == "ok"
