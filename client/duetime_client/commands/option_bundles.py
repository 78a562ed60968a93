"""Options that several commands share: a dataclass, each field of which is an option of the commands that take it."""

from __future__ import annotations

import inspect
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

C = TypeVar("C", bound="Callable[..., Any]")


class CommandGroup(typer.Typer):
    """A group of commands whose parameters may be bundles of options."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[C], C]:  # noqa: ANN401 - of the base class
        """Add the decorated function as a command."""
        add = super().command(name, **settings)

        def decorate(function: C) -> C:
            add(unbundled(function))
            return function

        return decorate


def unbundled(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command as typer can read it: with an option for each field of its bundles, which typer does not know."""
    signature = inspect.signature(command, eval_str=True)
    annotations = {each.name: each.annotation for each in signature.parameters.values()}
    bundles: dict[str, Any] = {name: each for name, each in annotations.items() if is_dataclass(each)}
    parameters: list[inspect.Parameter] = []
    for each in signature.parameters.values():
        parameters += options_of(bundles[each.name]) if each.name in bundles else [each]

    @wraps(command)
    def run(*arguments: Any, **values: Any) -> Any:  # noqa: ANN401 - of any command
        for name, bundle in bundles.items():
            values[name] = bundle(**{field.name: values.pop(field.name) for field in fields(bundle)})
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
