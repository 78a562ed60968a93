"""`duetime init`: a new project."""

from pathlib import Path
from typing import Annotated

import typer

from duetime_client.commands.command_help import examples
from duetime_client.commands.messages import show_error
from duetime_client.commands.output_streams import say
from duetime_client.new_project import Pipeline, ProjectRejected, create_project


@examples("duetime init my-project", "duetime init my-project --ci github")
def init(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder of the project, which gives the project its name.")
    ],
    *,
    pipeline: Annotated[
        Pipeline | None, typer.Option("--ci", help="Add a workflow that deploys the project, and the roles for it.")
    ] = None,
) -> None:
    """Create a project: handlers with tests, settings, a CDK app and a CI workflow."""
    try:
        written = create_project(folder, pipeline)
    except ProjectRejected as error:
        show_error(error)
        raise typer.Exit(2) from None
    say(f"{folder}: {len(written)} files")
    say(f"Next: cd {folder} && uv sync && uv run pytest; README.md says how to deploy.")
