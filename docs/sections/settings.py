"""Generates the lists of settings and of function sizes, and the table of differences between environments."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from enum import Enum
from typing import TYPE_CHECKING, Any

from docs.sections.markdown import bullets, code, documented, table
from duetime_cdk import canary, environments, handlers_environment, handlers_packages
from duetime_cdk.canary import Canary
from duetime_cdk.environments import SIZES, Environment
from duetime_cdk.handlers_environment import HandlersEnvironment
from duetime_cdk.handlers_packages import HandlersPackage
from duetime_cdk.layers.target import Target
from infra.environments import ENVIRONMENTS

if TYPE_CHECKING:
    from dataclasses import Field

_SENTENCE = re.compile(r"(?<=\.)\s+(?=[A-Z`0-9])")
_NEEDED = re.compile(r"^[`0-9]|\b(?:never|Never|cannot|must)\b")
"""Matches those sentences after a setting's first sentence that the page includes, which are meanings of special values
and warnings."""
_APART = frozenset({"name", "sizes"})


def setting_list() -> str:
    """List each setting with its default."""
    meanings = documented(environments, "Environment")
    rows = [
        (code(field.name), "" if field.name in _APART else _shown(_default(field)), _short(meanings[field.name]))
        for field in fields(Environment)
    ]
    return bullets(rows)


def _short(meaning: str) -> str:
    """Return the first sentence of a setting's meaning, and those later sentences that `_NEEDED` matches.

    In an editor, users see the field's complete docstring.
    """
    first, *others = _SENTENCE.split(meaning)
    return " ".join([first, *(each for each in others if _NEEDED.search(each))])


def handlers_environment_list() -> str:
    """List each field of `HandlersEnvironment`."""
    meanings = documented(handlers_environment, "HandlersEnvironment")
    return bullets(
        [(code(field.name), _shown(_default(field)), meanings[field.name]) for field in fields(HandlersEnvironment)]
    )


def handlers_package_list() -> str:
    """List each field of `HandlersPackage`."""
    meanings = documented(handlers_packages, "HandlersPackage")
    return bullets(
        [
            (code(field.name), "required" if _is_required(field) else _shown(_default(field)), meanings[field.name])
            for field in fields(HandlersPackage)
        ]
    )


def canary_list() -> str:
    """List each field of `Canary`."""
    meanings = documented(canary, "Canary")
    return bullets([(code(field.name), _shown(_default(field)), meanings[field.name]) for field in fields(Canary)])


def _is_required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def difference_table() -> str:
    """Return a table of the values in cloud environments that differ from the defaults."""
    shown = {name: each for name, each in ENVIRONMENTS.items() if name != "local"}
    rows = []
    for field in fields(Environment):
        values = [getattr(environment, field.name) for environment in shown.values()]
        if field.name not in _APART and any(value != _default(field) for value in values):
            rows.append((code(field.name), *(_shown(value) for value in values)))
    return table(("setting", *shown), rows)


def size_list() -> str:
    """List the default size of each function."""
    return "; ".join(f"{code(name)} {size.memory_mb} MB, {size.timeout_seconds} s" for name, size in SIZES.items())


def _default(field: Field[Any]) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _plain(value: object) -> str:
    return " ".join(code(each) for each in value) if isinstance(value, tuple) else str(value)


def _shown(value: object) -> str:
    """Return a value in readable form, which does not depend on the machine on which this code runs."""
    match value:
        case Target():
            return f"Python {value.python}, {value.architecture}" if value.wheels else "this machine's"
        case Enum():
            return code(value.value)
        case bool():
            return "yes" if value else "no"
        case dict():
            return ", ".join(f"{getattr(key, 'value', key)} {_plain(each)}" for key, each in value.items())
        case tuple():
            return ", ".join(code(getattr(each, "name", each)) for each in value)
        case str() if value:
            return code(value)
    if value in (None, "", HandlersEnvironment()):
        return ""
    return str(value)
