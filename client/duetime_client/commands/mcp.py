"""`duetime mcp`: serves the API's operations as tools for an AI assistant."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from duetime_client.assistant.tools import tools_of
from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import Deployment, connected_runner
from duetime_client.errors import ClientError
from duetime_client.io_operations import Request
from duetime_client.problems import document_of, unexpected_response

if TYPE_CHECKING:
    import httpx

NEEDS_EXTRA = 'serving the Model Context Protocol needs the package mcp: pip install "duetime-client[mcp]"'
OPENAPI = "/v1/openapi.json"


class ExtraMissing(ClientError):
    """The package `mcp` is not installed."""

    def __init__(self) -> None:
        super().__init__(NEEDS_EXTRA)


@examples("duetime mcp", "duetime mcp --url https://tasks.example.org --auth bearer --allow-writes")
def mcp(
    context: typer.Context,
    *,
    deployment: Deployment,
    allow_writes: Annotated[
        bool, typer.Option("--allow-writes", help="Also offer the tools that change something.")
    ] = False,
) -> None:
    """Serve the API's operations to an AI assistant; the protocol is the Model Context Protocol (MCP).

    The command serves on standard input and output. The tools are the operations in the deployment's OpenAPI document;
    without --allow-writes, only read operations are tools.
    """
    with connected_runner(context, deployment) as runner:
        try:
            from duetime_client.assistant.server import serve, server_of  # noqa: PLC0415 - an extra
        except ModuleNotFoundError as error:
            raise ExtraMissing from error
        document = runner.run(runner.session.send(Request("GET", OPENAPI, _described)))
        serve(server_of(runner, tools_of(document, allow_writes=allow_writes), allow_writes=allow_writes))


def _described(response: "httpx.Response") -> dict[str, Any]:
    """Parse an OpenAPI document.

    Raises:
        UnexpectedResponse: The response is not an OpenAPI document.
    """
    document = document_of(response)
    if not isinstance(document, dict) or "paths" not in document:
        raise unexpected_response(response, "no OpenAPI document in the response")
    return document
