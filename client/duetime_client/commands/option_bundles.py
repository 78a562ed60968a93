"""Shared options: each field of a dataclass becomes an option of the commands that take it."""

from __future__ import annotations

import inspect
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

import typer

from duetime_client.commands.command_help import HelpAll, HelpfulCommand, HelpfulGroup, examples_of
from duetime_client.commands.document_output import AsJson, OutputOptions, printing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

C = TypeVar("C", bound="Callable[..., Any]")

_HELP_ALL = "help_all"


class CommandGroup(typer.Typer):
    """A group of commands whose parameters may be bundles of options."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - as in the base class
        super().__init__(**{"cls": HelpfulGroup, **settings})

    def command(self, name: str | None = None, **settings: Any) -> Callable[[C], C]:  # noqa: ANN401 - as in the base class
        """Add the decorated function as a command."""

        def decorate(function: C) -> C:
            told = {"cls": HelpfulCommand, "epilog": "\n".join(examples_of(function)), **settings}
            super(CommandGroup, self).command(name, **told)(unbundled(function))
            return function

        return decorate


def unbundled(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with its bundles expanded into options, because typer does not support bundles.

    A bundle as the first parameter is the object that the command is called with; its options come last.
    """
    signature = inspect.signature(command, eval_str=True)
    bundles: dict[str, Any] = {
        each.name: OutputOptions if each.annotation == AsJson else each.annotation
        for each in signature.parameters.values()
        if each.annotation == AsJson or is_dataclass(each.annotation)
    }
    own: list[inspect.Parameter] = []
    last: list[inspect.Parameter] = []
    for each in signature.parameters.values():
        if each.name not in bundles:
            own.append(each)
        else:
            (own if each.kind is inspect.Parameter.KEYWORD_ONLY else last).extend(options_of(bundles[each.name]))
    last.append(inspect.Parameter(_HELP_ALL, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=HelpAll))
    parameters = [*own, *last]

    @wraps(command)
    def run(*arguments: Any, **values: Any) -> Any:  # noqa: ANN401 - of any command
        values.pop(_HELP_ALL, None)
        made = {name: _made(bundle, values) for name, bundle in bundles.items()}
        how = next((output.printing for each in made.values() for output in _outputs(each)), None)
        values |= {name: how is not None if isinstance(each, OutputOptions) else each for name, each in made.items()}
        with printing(how):
            return command(*arguments, **values)

    run.__annotations__ = {each.name: each.annotation for each in parameters}
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # `inspect` reads this attribute
    return run


def options_of(bundle: Any) -> list[inspect.Parameter]:  # noqa: ANN401 - any dataclass
    """The fields of a dataclass as keyword parameters; fields without a default are required."""
    types = get_type_hints(bundle, include_extras=True)
    kind = inspect.Parameter.KEYWORD_ONLY
    found: list[inspect.Parameter] = []
    for name, each in inspect.signature(bundle).parameters.items():
        if is_dataclass(types[name]):
            found += options_of(types[name])
        else:
            found.append(inspect.Parameter(name, kind, default=each.default, annotation=types[name]))
    return found


def _made(bundle: Any, values: dict[str, Any]) -> Any:  # noqa: ANN401 - any dataclass
    """Build a bundle from the values of its options, and remove these options from `values`."""
    types = get_type_hints(bundle)
    return bundle(
        **{
            each.name: _made(types[each.name], values) if is_dataclass(types[each.name]) else values.pop(each.name)
            for each in fields(bundle)
        }
    )


def _outputs(bundle: Any) -> Iterator[OutputOptions]:  # noqa: ANN401 - any dataclass
    """The output options in a bundle."""
    for each in (bundle, *(getattr(bundle, each.name) for each in fields(bundle))):
        if isinstance(each, OutputOptions):
            yield each
