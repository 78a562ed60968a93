"""`duetime uninstall` deletes a stack, and lists the resources that are kept."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import boto3
import typer
from botocore.exceptions import BotoCoreError, ClientError

from duetime.composition.recovery import table_restore
from duetime_cdk.stack_resources import StackResource, StackUnreadable, outputs_of, resources_of
from duetime_client.commands.command_help import examples
from duetime_client.commands.messages import show_error
from duetime_client.commands.output_streams import say
from duetime_client.errors import ClientError as CommandFailed

if TYPE_CHECKING:
    from collections.abc import Sequence

_TABLE, _BUCKET, _LOGS, _SECRET = (
    "AWS::DynamoDB::Table",
    "AWS::S3::Bucket",
    "AWS::Logs::LogGroup",
    "AWS::SecretsManager::Secret",
)
_GIGABYTE = 1_000_000_000
_MONTHLY = {_TABLE: 0.25 + 0.20, _LOGS: 0.03, _SECRET: 0.40}
"""US dollars a month in us-east-1, for a gigabyte of a table with its continuous backup, a gigabyte of logs, and a
secret (Source: the price lists of DynamoDB, CloudWatch and Secrets Manager)."""


@examples("duetime uninstall duetime-dev", "duetime uninstall duetime-dev --yes")
def uninstall(
    stack: Annotated[str, typer.Argument(metavar="STACK", help="The CloudFormation stack, such as duetime-dev.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete it; without this, nothing is deleted.")] = False,
) -> None:
    """Show what deleting a stack deletes and keeps; with --yes, delete the stack.

    Kept resources are billed until you delete them. A recreated stack can use the kept table and bucket.
    """
    try:
        resources = resources_of(stack)
        outputs = outputs_of(stack)
    except StackUnreadable as error:
        show_error(CommandFailed(str(error)))
        raise typer.Exit(1) from None
    kept = [each for each in resources if each.is_kept]
    deleted = Counter(each.type for each in resources if not each.is_kept)
    say(f"{stack}: {sum(deleted.values())} resources are deleted, {len(kept)} stay")
    for type_, number in sorted(deleted.items()):
        if type_ in {_TABLE, _BUCKET, _LOGS, _SECRET}:
            say(f"  deleted: {number} {type_}, with all that it contains")
    for each in sorted(kept, key=lambda one: (one.type, one.logical_id)):
        say(f"  stays: {each.type} {each.physical_id}{_size(each)}")
    _say_how_to_take_over(kept, outputs.get("TableName", ""), outputs.get("BucketName", ""))
    if not yes:
        say("Nothing was deleted: give --yes.")
        return
    try:
        client = boto3.client("cloudformation")
        client.delete_stack(StackName=stack)
        client.get_waiter("stack_delete_complete").wait(StackName=stack)
    except (BotoCoreError, ClientError) as error:
        show_error(CommandFailed(f"the stack was not deleted: {error}"))
        raise typer.Exit(1) from None
    say(f"{stack} is deleted.")


def _size(resource: StackResource) -> str:
    """Size and monthly price of a kept resource, if AWS reports them in one request."""
    try:
        match resource.type:
            case "AWS::DynamoDB::Table":
                size = boto3.client("dynamodb").describe_table(TableName=resource.physical_id)["Table"]
                return _priced(resource.type, size.get("TableSizeBytes", 0))
            case "AWS::Logs::LogGroup":
                client: Any = boto3.client("logs")
                groups = client.describe_log_groups(logGroupNamePrefix=resource.physical_id)["logGroups"]
                return _priced(resource.type, sum(group.get("storedBytes", 0) for group in groups[:1]))
            case "AWS::SecretsManager::Secret":
                return f" ({_MONTHLY[_SECRET]:.2f} dollars a month)"
            case "AWS::S3::Bucket":
                return " (its size is in S3's metrics)"
    except (BotoCoreError, ClientError):
        # The caller may lack the permission to read the size; the resource is then listed without a size.
        return ""
    return ""


def _priced(type_: str, size: int) -> str:
    return f" ({size / _GIGABYTE:.3f} GB, {size / _GIGABYTE * _MONTHLY[type_]:.2f} dollars a month)"


def _say_how_to_take_over(kept: Sequence[StackResource], table: str, bucket: str) -> None:
    names = {each.physical_id for each in kept}
    if table not in names:
        return
    try:
        stream = boto3.client("dynamodb").describe_table(TableName=table)["Table"].get("LatestStreamArn", "")
        epoch = table_restore().epoch_of(table)
    except (BotoCoreError, ClientError) as error:
        say(f"The table cannot be described: {error}")
        return
    say("A recreated stack takes over the tasks with these settings:")
    say(f'    table="{table}",')
    say(f'    table_stream_arn="{stream}",')
    if bucket in names:
        say(f'    content_bucket="{bucket}",')
    if epoch:
        say(f"    epoch={epoch},")
