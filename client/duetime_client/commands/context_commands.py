"""`duetime context`: deployments by name."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from duetime_client.authentication import Authentication
from duetime_client.commands.command_help import examples
from duetime_client.commands.completions import context_names
from duetime_client.commands.connection import exit_code_of, resolved
from duetime_client.commands.contexts import (
    LOCAL,
    Context,
    Contexts,
    ContextUnknown,
    contexts_file,
    local_url,
    read_contexts,
    write_contexts,
)
from duetime_client.commands.document_output import AsJson
from duetime_client.commands.messages import show_error
from duetime_client.commands.option_bundles import CommandGroup
from duetime_client.commands.output_streams import console, printable, say, show_json
from duetime_client.errors import ClientError
from duetime_client.stack_outputs import api_url_of

app = CommandGroup(help="Name deployments, and choose the one that commands use.", no_args_is_help=True)

NewName = Annotated[str, typer.Argument(metavar="NAME", help="Name of a context.")]
Name = Annotated[str, typer.Argument(metavar="NAME", autocompletion=context_names, help="Name of a context.")]


@app.command()
@examples(
    "duetime context add staging --url https://tasks.example.org --auth bearer",
    "duetime context add prod --stack duetime-prod --use",
)
def add(
    name: NewName,
    *,
    url: Annotated[str, typer.Option("--url", metavar="URL", help="Address of the API.")] = "",
    stack: Annotated[
        str, typer.Option("--stack", metavar="STACK", help="CloudFormation stack with the address in its outputs.")
    ] = "",
    auth: Annotated[
        Authentication | None, typer.Option("--auth", help="Default: iam with --stack, none with --url.")
    ] = None,
    owner: Annotated[
        str, typer.Option("--owner", metavar="NAME", help="Owner to act for, such as one of your teams.")
    ] = "",
    codec: Annotated[
        str, typer.Option("--codec", metavar="MODULE:NAME", help="Codec that encrypts and decrypts on this machine.")
    ] = "",
    use: Annotated[bool, typer.Option("--use", help="Use the context from now on.")] = False,
) -> None:
    """Add or replace a context."""
    if bool(url) == bool(stack):
        raise typer.BadParameter("give one of: --url, --stack")
    if name == LOCAL:
        raise typer.BadParameter(f"{LOCAL} is the stack of this machine", param_hint="NAME")
    method = auth or (Authentication.IAM if stack else Authentication.NONE)
    with _errors():
        added = Context(url or api_url_of(stack), method.value, owner, stack, codec)
        contexts = _read()
        by_name = {**contexts.by_name, name: added}
        write_contexts(contexts_file(), replace(contexts, by_name=by_name, current=name if use else contexts.current))
    say(f"added {name}: {added.url}" + (", in use" if use else f"; duetime context use {name}"))


@app.command()
@examples("duetime context use prod")
def use(name: Name) -> None:
    """Use a context from now on; `local` is the stack of this machine."""
    with _errors():
        contexts = _read()
        if name != LOCAL and name not in contexts.by_name:
            raise ContextUnknown(name, {*contexts.by_name, LOCAL})
        write_contexts(contexts_file(), replace(contexts, current=name))
    say(f"using {name}")


@app.command()
@examples("duetime context remove staging")
def remove(name: Name) -> None:
    """Remove a context."""
    with _errors():
        contexts = _read()
        if name not in contexts.by_name:
            raise ContextUnknown(name, contexts.by_name)
        rest = {each: context for each, context in contexts.by_name.items() if each != name}
        write_contexts(contexts_file(), Contexts(rest, "" if contexts.current == name else contexts.current))
    say(f"removed {name}")


@app.command("list")
@examples("duetime context list --json")
def list_(*, as_json: AsJson = False) -> None:
    """List contexts; an asterisk marks the context in use."""
    with _errors():
        contexts = _read()
    here = local_url(Path.cwd())
    known = {**({LOCAL: Context(here)} if here else {}), **contexts.by_name}
    if as_json:
        show_json([{"name": name, "in_use": name == contexts.current, **asdict(each)} for name, each in known.items()])
        return
    table = Table("", "NAME", "URL", "AUTH", "OWNER", "STACK", "CODEC", box=None, pad_edge=False)
    for name, each in known.items():
        mark = "*" if name == contexts.current else ""
        table.add_row(mark, *map(printable, (name, each.url, each.auth, each.owner, each.stack, each.codec)))
    console().print(table if known else "no contexts: duetime context add")


@app.command()
@examples("duetime context show")
def show(*, as_json: AsJson = False) -> None:
    """Show which deployment commands use here, and why."""
    with _errors():
        choice = resolved()
    if as_json:
        show_json({"name": choice.name, "why": choice.why, **asdict(choice.context)})
        return
    say(f"{choice.context.url}  auth {choice.context.auth}  ({choice.name}: {choice.why})")


def _read() -> Contexts:
    return read_contexts(contexts_file())


@contextmanager
def _errors() -> Iterator[None]:
    """Print the message of an error, and exit with its code."""
    try:
        yield
    except ClientError as error:
        show_error(error)
        raise typer.Exit(exit_code_of(error)) from error
