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
    from collections.abc import Callable

C = TypeVar("C", bound="Callable[..., Any]")

_HELP_ALL = "help_all"


class CommandGroup(typer.Typer):
    """A group of commands whose parameters may be bundles of options."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - of the base class
        super().__init__(**{"cls": HelpfulGroup, **settings})

    def command(self, name: str | None = None, **settings: Any) -> Callable[[C], C]:  # noqa: ANN401 - of the base class
        """Add the decorated function as a command."""

        def decorate(function: C) -> C:
            told = {"cls": HelpfulCommand, "epilog": "\n".join(examples_of(function)), **settings}
            super(CommandGroup, self).command(name, **told)(unbundled(function))
            return function

        return decorate


def unbundled(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with its bundles expanded into options, because typer does not support bundles."""
    signature = inspect.signature(command, eval_str=True)
    annotations = {each.name: each.annotation for each in signature.parameters.values()}
    bundles: dict[str, Any] = {name: each for name, each in annotations.items() if is_dataclass(each)}
    bundles |= {name: OutputOptions for name, each in annotations.items() if each == AsJson}
    parameters: list[inspect.Parameter] = []
    for each in signature.parameters.values():
        parameters += options_of(bundles[each.name]) if each.name in bundles else [each]
    parameters.append(inspect.Parameter(_HELP_ALL, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=HelpAll))

    @wraps(command)
    def run(*arguments: Any, **values: Any) -> Any:  # noqa: ANN401 - of any command
        values.pop(_HELP_ALL, None)
        how = None
        for name, bundle in bundles.items():
            values[name] = bundle(**{field.name: values.pop(field.name) for field in fields(bundle)})
            if bundle is OutputOptions:
                how = values[name].printing
                values[name] = how is not None
        with printing(how):
            return command(*arguments, **values)

    run.__annotations__ = {each.name: each.annotation for each in parameters}
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # inspect reads it
    return run


def options_of(bundle: Any) -> list[inspect.Parameter]:  # noqa: ANN401 - any dataclass
    """The fields of a dataclass as keyword parameters; those without a default are required."""
    types = get_type_hints(bundle, include_extras=True)
    defaults = {name: each.default for name, each in inspect.signature(bundle).parameters.items()}
    kind = inspect.Parameter.KEYWORD_ONLY
    return [inspect.Parameter(name, kind, default=defaults[name], annotation=types[name]) for name in defaults]
