"""`duetime template`: writes a project's stack for tools other than the CDK."""

from pathlib import Path
from typing import Annotated

import typer

from duetime_client.cdk_project import OUTPUT, StackNotFound, chosen_stack, project_here
from duetime_client.commands.command_help import examples
from duetime_client.commands.messages import show_error
from duetime_client.commands.output_streams import say
from duetime_client.errors import ClientError
from duetime_client.standalone_template import BUCKET, PREFIX, write_standalone


@examples("duetime template", "duetime template -e prod --folder dist/duetime")
def template(
    *,
    environment: Annotated[
        str, typer.Option("--environment", "-e", metavar="NAME", help="Environment of the project's settings.")
    ] = "dev",
    stack: Annotated[str, typer.Option("--stack", metavar="STACK", help="Stack, if the app has several.")] = "",
    folder: Annotated[Path, typer.Option("--folder", help="Where to write it.")] = Path("build", "template"),
) -> None:
    """Write the stack as a template for Terraform, SAM and other tools.

    Upload the assets next to the template to a bucket, and deploy the template with its parameters AssetsBucket and
    AssetsPrefix. Exit codes: 0 written; 1 failed; 2 no such stack.
    """
    try:
        project = project_here()
        name = chosen_stack(project.synthesize(environment), stack)
        written = write_standalone(project.folder / OUTPUT, name, folder)
    except StackNotFound as error:
        show_error(error)
        raise typer.Exit(2) from None
    except ClientError as error:
        show_error(error)
        raise typer.Exit(1) from None
    say(f"{written.template}: {name}, {written.bytes} bytes; {written.assets} assets beside it")
    say(f"Parameters: {BUCKET}, the bucket that you upload the assets to, and {PREFIX}")
