"""`duetime secrets`: list, rotate."""

import base64
from secrets import token_bytes
from typing import Annotated

import typer

from duetime_client.commands.clock import Clock
from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import Call
from duetime_client.commands.logs import Stack
from duetime_client.commands.option_bundles import CommandGroup
from duetime_client.commands.output_streams import console, say
from duetime_client.signing_secrets import SigningSecrets
from duetime_client.stack_outputs import StackUnreadable, rotate_signing_secret

app = CommandGroup(help="Show and change the secrets that sign HTTP calls.", no_args_is_help=True)
SECRET_BYTES = 48
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


@app.command("list")
@examples("duetime secrets list")
def list_secrets(call: Call) -> None:
    """Print the secrets that sign HTTP calls for you: the current one, and the one before, which signs, too."""
    with call.client() as client:
        found = client.signing_secrets.list()
    call.show(found, _show)


def _show(found: SigningSecrets, _clock: Clock) -> None:
    if not found.secrets:
        console().print("this deployment does not sign calls", style="dim")
    for each in found.secrets:
        console().print(each.secret if each.is_current else f"{each.secret}  (previous)", soft_wrap=True)


@app.command()
@examples("duetime secrets rotate --stack duetime-prod")
def rotate(*, stack: Stack, yes: Yes = False) -> None:
    """Give every owner of a deployment a new secret; the present ones go on signing until the next rotation.

    For operators: it needs botocore (`pip install "duetime-client[aws]"`) and permission to change the stack's secret.
    Rotate again only after the endpoints have the new secrets: the oldest of three signs no more.
    """
    if not yes:
        typer.confirm(f"All owners of {stack} get a new secret. Continue?", abort=True, err=True)
    try:
        rotate_signing_secret(stack, lambda: base64.b64encode(token_bytes(SECRET_BYTES)).decode())
    except StackUnreadable as error:
        raise typer.BadParameter(str(error), param_hint="--stack") from error
    say("rotated: within five minutes calls have two signatures; duetime secrets list shows both secrets")
