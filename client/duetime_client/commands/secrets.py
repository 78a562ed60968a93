"""`duetime secrets`: list, keys, rotate."""

import base64
from secrets import token_bytes
from typing import Annotated

import typer

from duetime_client.commands.clock import Clock
from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import Call
from duetime_client.commands.formatting import localized
from duetime_client.commands.logs import Stack
from duetime_client.commands.option_bundles import CommandGroup
from duetime_client.commands.output_streams import console, say
from duetime_client.signing_secrets import SigningKey, SigningKeys, SigningSecrets
from duetime_client.stack_outputs import StackUnreadable, change_signing_keys
from duetime_common.signing_keys import SigningKeys as StoredKeys
from duetime_common.signing_keys import SigningKeysFull

app = CommandGroup(help="Show and change the secrets that sign HTTP calls.", no_args_is_help=True)
SECRET_BYTES = 48
MOST_DAYS = 3_650
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
Owner = Annotated[str | None, typer.Option(help="Change the secret of this owner only.")]
EveryDays = Annotated[
    int | None,
    typer.Option(
        min=0, max=MOST_DAYS, help="Number of days between rotations of all secrets; 0: no automatic rotation."
    ),
]


@app.command("list")
@examples("duetime secrets list")
def list_secrets(call: Call) -> None:
    """Print the current and the previous secrets that sign HTTP calls for you, with their public keys."""
    with call.client() as client:
        found = client.signing_secrets.list()
    call.show(found, _show_secrets)


@app.command()
@examples("duetime secrets keys 123456789012:role/Billing")
def keys(call: Call, of: Annotated[str, typer.Argument(metavar="OWNER", help="The owner.")]) -> None:
    """Print the public keys that verify HTTP calls for an owner; public keys need not be kept secret."""
    with call.client() as client:
        found = client.signing_secrets.list_public_keys(of)
    call.show(found, _show_keys)


def _show_secrets(found: SigningSecrets, clock: Clock) -> None:
    for each in found.secrets:
        console().print(_line(each.secret, each), soft_wrap=True)
    _show_keys(SigningKeys(owner="", keys=found.secrets, rotates_at=found.rotates_at), clock)


def _show_keys(found: SigningKeys, clock: Clock) -> None:
    if not found.keys:
        console().print("this deployment does not sign calls", style="dim")
    for each in found.keys:
        console().print(_line(each.public_key, each), soft_wrap=True)
    if found.rotates_at is not None:
        console().print(f"rotated next at {localized(found.rotates_at, clock):%Y-%m-%d %H:%M}", style="dim")


def _line(text: str, key: SigningKey) -> str:
    return text if key.is_current else f"{text}  (previous)"


@app.command()
@examples("duetime secrets rotate --stack duetime-prod", "duetime secrets rotate --stack duetime-prod --every-days 90")
def rotate(
    context: typer.Context, *, stack: Stack, owner: Owner = None, every_days: EveryDays = None, yes: Yes = False
) -> None:
    """Give every owner of a deployment, or one owner, a new secret; current secrets sign until the next rotation.

    For operators; this needs botocore (`pip install "duetime-client[aws]"`) and permission to change the stack's
    secret. Rotate again only after the endpoints have the new secrets, because the oldest of three secrets stops
    signing.
    """
    if owner is not None and every_days is not None:
        raise typer.BadParameter("the schedule is the same for all owners", param_hint="--every-days")
    if not yes:
        whose = f"All owners of {stack} get" if owner is None else f"{owner} gets"
        typer.confirm(f"{whose} a new secret. Continue?", abort=True, err=True)

    now = int(context.ensure_object(Clock).now().timestamp() * 1_000)

    def change(present: StoredKeys) -> StoredKeys:
        if owner is not None:
            return present.rotated_for(owner, now)
        return present.rotated(base64.b64encode(token_bytes(SECRET_BYTES)).decode(), now, every_days)

    try:
        change_signing_keys(stack, change)
    except (StackUnreadable, SigningKeysFull) as error:
        raise typer.BadParameter(str(error), param_hint="--stack") from error
    say("rotated: within five minutes calls are signed with both secrets; duetime secrets list shows them")
