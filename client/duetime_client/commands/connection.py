"""Which deployment a command talks to, and what it says when that fails."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from duetime_client.authentication import Authentication, authenticated
from duetime_client.client import Client
from duetime_client.commands.clock import Clock
from duetime_client.commands.messages import show_error
from duetime_client.errors import AddressInvalid, ClientError, CredentialsMissing, HeaderInvalid, Unreachable

TOKEN_VARIABLE = "DUETIME_TOKEN"  # noqa: S105 - the name of a variable, not a secret
PANEL = "Deployment"

Url = Annotated[
    str, typer.Option("--url", envvar="DUETIME_URL", help="Address of the API.", rich_help_panel=PANEL, metavar="URL")
]
Auth = Annotated[
    Authentication,
    typer.Option(
        "--auth",
        envvar="DUETIME_AUTH",
        help=f"iam signs with the AWS credentials of the environment, bearer sends the token in {TOKEN_VARIABLE}.",
        rich_help_panel=PANEL,
    ),
]
Owner = Annotated[
    str | None,
    typer.Option(
        "--owner",
        envvar="DUETIME_OWNER",
        help="Owner of the tasks, for a deployment without authentication.",
        rich_help_panel=PANEL,
        metavar="NAME",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the API's JSON, one document, instead of a table.")]


@contextmanager
def connected(context: typer.Context, url: str, auth: Authentication, owner: str | None) -> Iterator[Client]:
    """A client of the chosen deployment; an error of it ends the command with a message and its exit code."""
    clock = context.ensure_object(Clock)
    try:
        signed = authenticated(auth, os.environ.get(TOKEN_VARIABLE, ""))
        with Client(url, auth=signed, owner=owner, sleep=clock.sleep, now=clock.now) as client:
            yield client
    except ClientError as error:
        show_error(error)
        raise typer.Exit(exit_code_of(error)) from error


def exit_code_of(error: ClientError) -> int:
    """1: the API refused, 2: the command was not given what it needs, 3: there is no answer."""
    match error:
        case AddressInvalid() | CredentialsMissing() | HeaderInvalid():
            return 2
        case Unreachable():
            return 3
        case _:
            return 1
