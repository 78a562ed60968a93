"""The deployment that a command uses, and the exit codes of its errors."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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
        help=f"iam: sign with the AWS credentials of the environment; bearer: send the token in {TOKEN_VARIABLE}.",
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


@dataclass(frozen=True, slots=True)
class Deployment:
    """The options that say which deployment a command uses, and as whom."""

    url: Url
    auth: Auth = Authentication.NONE
    owner: Owner = None


@contextmanager
def connected(context: typer.Context, deployment: Deployment) -> Iterator[Client]:
    """A client of a deployment; one of its errors ends the command with a message and an exit code."""
    clock = context.ensure_object(Clock)
    try:
        signed = authenticated(deployment.auth, os.environ.get(TOKEN_VARIABLE, ""))
        with Client(deployment.url, auth=signed, owner=deployment.owner, sleep=clock.sleep, now=clock.now) as client:
            yield client
    except ClientError as error:
        show_error(error)
        raise typer.Exit(exit_code_of(error)) from error


def exit_code_of(error: ClientError) -> int:
    """1: the API rejected the request, 2: the command line is not valid, 3: the API did not respond."""
    match error:
        case AddressInvalid() | CredentialsMissing() | HeaderInvalid():
            return 2
        case Unreachable():
            return 3
        case _:
            return 1
