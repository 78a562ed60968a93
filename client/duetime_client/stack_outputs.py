"""Reads the address of a deployment, and changes its signing keys, through the CloudFormation stack.

This module requires botocore (the extra `aws`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_OID, uuid5

from duetime_client.errors import ClientError
from duetime_common.signing_keys import SigningKeys

if TYPE_CHECKING:
    from collections.abc import Callable

_TRIES = 5
OUTPUT, SIGNING_SECRET = "ApiUrl", "SigningSecretArn"


class StackUnreadable(ClientError):
    """The outputs of a CloudFormation stack cannot be read, or lack a required output."""

    def __init__(self, stack: str, reason: str) -> None:
        super().__init__(f"the stack {stack} cannot be read: {reason}")


def api_url_of(stack: str) -> str:
    """The API address of a stack in the account and region of the environment.

    Raises:
        StackUnreadable: the stack cannot be read.
    """
    return _output(stack, _session(stack), OUTPUT)


def change_signing_keys(stack: str, change: Callable[[SigningKeys], SigningKeys]) -> None:
    """Change the signing keys of a stack, in the account and region of the environment.

    Concurrent changes are not lost: the id of the new version is derived from the id of the current version, and a
    version is written only once (Source: Secrets Manager API Reference, PutSecretValue).

    Raises:
        StackUnreadable: the keys cannot be read or changed, or other processes keep changing them.
        SigningKeysFull: the keys would be too large for Secrets Manager.
    """
    session = _session(stack)
    arn = _output(stack, session, SIGNING_SECRET)
    from botocore.exceptions import BotoCoreError  # noqa: PLC0415 - an optional package, found above
    from botocore.exceptions import ClientError as Rejected  # noqa: PLC0415 - same

    try:
        client = session.create_client("secretsmanager")
        for _ in range(_TRIES):
            found = client.get_secret_value(SecretId=arn)
            changed = change(SigningKeys.parse(found["SecretString"]))
            version = str(uuid5(NAMESPACE_OID, found["VersionId"]))
            try:
                client.put_secret_value(SecretId=arn, ClientRequestToken=version, SecretString=changed.text)
            except client.exceptions.ResourceExistsException:
                continue
            return
    except (BotoCoreError, Rejected, ValueError) as error:
        raise StackUnreadable(stack, str(error)) from error
    raise StackUnreadable(stack, "another rotation of the secret is under way; try again")


def _session(stack: str) -> Any:  # noqa: ANN401 - botocore has no types
    try:
        # botocore is imported here because it is an extra, and takes longer to import than all other modules.
        import botocore.session  # noqa: PLC0415 - see the line above
    except ModuleNotFoundError:
        raise StackUnreadable(stack, 'botocore is not installed: pip install "duetime-client[aws]"') from None
    return botocore.session.get_session()


def _output(stack: str, session: Any, name: str) -> str:  # noqa: ANN401 - botocore has no types
    from botocore.exceptions import BotoCoreError  # noqa: PLC0415 - an optional package, found above
    from botocore.exceptions import ClientError as Rejected  # noqa: PLC0415 - same

    try:
        (found,) = session.create_client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
    except (BotoCoreError, Rejected) as error:
        raise StackUnreadable(stack, str(error)) from error
    outputs = {output["OutputKey"]: output["OutputValue"] for output in found.get("Outputs", ())}
    if name not in outputs:
        raise StackUnreadable(stack, f"the stack has no output {name}")
    return str(outputs[name])
