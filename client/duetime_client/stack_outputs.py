"""The address of a deployment, from the outputs of its CloudFormation stack. Needs botocore, the extra `aws`."""

from __future__ import annotations

from typing import Any

from duetime_client.errors import ClientError

OUTPUT = "ApiUrl"


class StackUnreadable(ClientError):
    """The outputs of a CloudFormation stack cannot be read, or name no address."""

    def __init__(self, stack: str, reason: str) -> None:
        super().__init__(f"the stack {stack} cannot be read: {reason}")


def api_url_of(stack: str) -> str:
    """The address of the API of a stack, in the account and region of the environment.

    Raises:
        StackUnreadable: it cannot be read.
    """
    try:
        # Imported here, because botocore is an extra and takes longer to import than all the rest.
        import botocore.session  # noqa: PLC0415 - see the line above
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415 - same
        from botocore.exceptions import ClientError as Rejected  # noqa: PLC0415 - same
    except ModuleNotFoundError:
        raise StackUnreadable(stack, 'it needs botocore: pip install "duetime-client[aws]"') from None
    try:
        cloudformation: Any = botocore.session.get_session().create_client("cloudformation")
        (found,) = cloudformation.describe_stacks(StackName=stack)["Stacks"]
    except (BotoCoreError, Rejected) as error:
        raise StackUnreadable(stack, str(error)) from error
    outputs = {output["OutputKey"]: output["OutputValue"] for output in found.get("Outputs", ())}
    if OUTPUT not in outputs:
        raise StackUnreadable(stack, f"it has no output {OUTPUT}")
    return str(outputs[OUTPUT])
