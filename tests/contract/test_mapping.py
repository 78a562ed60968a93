from __future__ import annotations

import ast
import importlib
import types
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ForwardRef, Literal, NotRequired, TypeAlias, Union, get_args, get_origin

import pytest
from pydantic import BaseModel
from typing_extensions import is_typeddict

from duetime import contract
from duetime.contract.mapping import INSTANTS

ROOT = Path(contract.__path__[0])
UNIONS = (Union, types.UnionType)
Hint: TypeAlias = Any
"""A type in an annotation, such as a class, a union or a `Literal`."""


@dataclass(frozen=True)
class Copy:
    """A call to `response_of` or `value_of`.

    Attributes:
        place: file and line.
        target: the type of the response or value that is made.
        source: the type whose fields are copied.
        given: the names of the fields that the call passes explicitly.
    """

    place: str
    target: type
    source: type
    given: frozenset[str]

    @property
    def copied(self) -> dict[str, tuple[Any, Any]]:
        """Return each copied field's type in the source and in the target; `None` if the source lacks the field."""
        sources = hints_of(self.source)
        return {name: (sources.get(name), hint) for name, hint in self.names.items() if name not in self.given}

    @property
    def names(self) -> dict[str, Any]:
        """Return the types of the target's fields."""
        properties = {name for name, each in vars(self.target).items() if isinstance(each, property)}
        return {name: hint for name, hint in hints_of(self.target).items() if name not in properties}


@cache
def names_in(module: str) -> dict[str, Any]:
    """Return a module's names, including names imported only for the type checker or within functions."""
    loaded = importlib.import_module(module)
    names = dict(vars(loaded))
    for node in ast.walk(ast.parse(Path(str(loaded.__file__)).read_text())):
        if isinstance(node, ast.ImportFrom):
            exec(ast.unparse(node), names)  # noqa: S102 - the imports of duetime's own modules
    return names


@cache
def hints_of(kind: type) -> dict[str, Any]:
    """Return the types of a class's fields and properties."""
    if issubclass(kind, BaseModel):
        return {name: field.annotation for name, field in kind.model_fields.items()}
    hints: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("duetime."):
            for name, hint in vars(base).get("__annotations__", {}).items():
                hints[name] = evaluated(hint, base.__module__)
            for name, each in vars(base).items():
                if isinstance(each, property):
                    hints[name] = evaluated(each.fget.__annotations__["return"], base.__module__)
    return hints


def evaluated(hint: Hint, module: str) -> Hint:
    """Return an annotation's type in a module."""
    if isinstance(hint, ForwardRef):
        hint, module = hint.__forward_arg__, hint.__forward_module__ or module
    return eval(hint, names_in(module)) if isinstance(hint, str) else hint  # noqa: S307 - our own annotations


def origin_of(hint: Hint) -> Hint:
    """Return the generic type of a parametrized type, or `None`."""
    return get_origin(hint)


def kinds_in(hint: Hint) -> tuple[Any, ...]:
    """Return the members of a union without null, or the type itself."""
    while origin_of(hint) is Annotated:
        hint = get_args(hint)[0]
    return tuple(each for each in get_args(hint) if each is not type(None)) if origin_of(hint) in UNIONS else (hint,)


def source_of(expression: ast.expr, function: ast.FunctionDef, module: str) -> type:
    """Return the type of a function's parameter or variable, or of an attribute of one of these."""
    if isinstance(expression, ast.IfExp):
        return source_of(expression.orelse, function, module)
    if isinstance(expression, ast.Call):
        assert ast.unparse(expression.func) == "read_body"
        return evaluated(ast.unparse(expression.args[0]), module)  # type: ignore[no-any-return]
    if isinstance(expression, ast.Attribute):
        hint = hints_of(source_of(expression.value, function, module))[expression.attr]
    else:
        assert isinstance(expression, ast.Name), ast.unparse(expression)
        annotations = {each.arg: each.annotation for each in function.args.args}
        if expression.id not in annotations:
            return source_of(dict(variables(function))[expression.id], function, module)
        hint = evaluated(ast.unparse(annotations[expression.id] or ast.Constant(None)), module)
    (kind,) = kinds_in(hint)
    return kind  # type: ignore[no-any-return]


def variables(function: ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    """Return a function's variables, each with its assigned expressions."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            (target,) = node.targets
            pairs = (
                zip(target.elts, node.value.elts, strict=True)
                if isinstance(node.value, ast.Tuple) and isinstance(target, ast.Tuple)
                else [(target, node.value)]
            )
            yield from ((name.id, value) for name, value in pairs if isinstance(name, ast.Name))


def given_by(call: ast.Call, module: str) -> Iterator[str]:
    """Return the names that a call passes as keywords or, after `**`, as fields of a form that a function returns."""
    for keyword in call.keywords:
        if keyword.arg is not None:
            yield keyword.arg
        else:
            assert isinstance(keyword.value, ast.Call)
            function = evaluated(ast.unparse(keyword.value.func), module)
            yield from hints_of(evaluated(function.__annotations__["return"], module))


def copies() -> Iterator[Copy]:
    """Return all mapping calls in the contract."""
    for path in sorted(ROOT.rglob("*.py")):
        module = ".".join(("duetime", "contract", *path.relative_to(ROOT).with_suffix("").parts))
        for function in ast.walk(ast.parse(path.read_text())):
            if not isinstance(function, ast.FunctionDef):
                continue
            for call in ast.walk(function):
                if isinstance(call, ast.Call) and ast.unparse(call.func) in ("response_of", "value_of"):
                    target = evaluated(ast.unparse(call.args[0]), module)
                    source = source_of(call.args[1], function, module)
                    yield Copy(f"{path.stem}:{call.lineno}", target, source, frozenset(given_by(call, module)))


COPIES = list(copies())
each_copy = pytest.mark.parametrize("each", COPIES, ids=[each.place for each in COPIES])


def fits(value: Hint, hint: Hint) -> bool:
    """Return whether every value of one type is a value of the other type."""
    value, hint = plain(value), plain(hint)
    if hint is Any or value == hint:
        return True
    if origin_of(value) in UNIONS:
        return all(fits(each, hint) for each in get_args(value))
    if origin_of(hint) in UNIONS:
        return any(fits(value, each) for each in get_args(hint))
    if Literal in (origin_of(value), origin_of(hint)):
        return origin_of(value) is origin_of(hint) and set(get_args(value)) <= set(get_args(hint))
    if is_typeddict(hint):
        return False
    inner = [each for each in get_args(value) if each is not ...]
    return issubclass(origin_of(value) or value, origin_of(hint) or hint) and all(map(fits, inner, get_args(hint)))


def plain(hint: Hint) -> Hint:
    """Return a type without its pydantic annotations."""
    while origin_of(hint) in (Annotated, NotRequired):
        hint = get_args(hint)[0]
    return hint


def is_instant(hint: Hint) -> bool:
    """Return whether a target's field is an instant, with or without null."""
    return "'format': 'date-time'" in str(hint)


def test_the_checks_find_calls_of_both_mapping_functions() -> None:
    """The checks in this module find the calls in most resources, so they do not pass for lack of calls."""
    responses = [each for each in COPIES if is_typeddict(each.target)]
    assert len(responses) >= 20
    assert len(COPIES) - len(responses) >= 8


@each_copy
def test_every_field_copied_by_name_exists_on_both_sides(each: Copy) -> None:
    """Fields that are copied by name exist in source and target, and explicitly passed fields exist in the target."""
    assert [name for name, (source, _) in each.copied.items() if source is None] == []
    assert each.given <= each.names.keys()


@each_copy
def test_every_copied_field_has_the_declared_type(each: Copy) -> None:
    """Copied fields have the type that the target declares, except that instants are converted to text."""
    strange = [
        (name, source, hint)
        for name, (source, hint) in each.copied.items()
        if not (fits(source, int | None) if is_instant(hint) else fits(source, hint))
    ]
    assert strange == []


@each_copy
def test_instant_fields_are_recognized_by_their_names(each: Copy) -> None:
    """Among a response's copied fields, the instants, and no other fields, have names with a suffix for instants."""
    if is_typeddict(each.target):
        assert [
            name for name, (_, hint) in each.copied.items() if is_instant(hint) is not name.endswith(INSTANTS)
        ] == []


@pytest.mark.parametrize(
    ("value", "hint", "expected"),
    [
        (int, int | None, True),
        (int | None, int, False),
        (str, int, False),
        (tuple[str, ...], Collection[str], True),
        (tuple[str, ...], Collection[int], False),
        (Literal["a"], Literal["a", "b"], True),
        (str, Literal["a"], False),
        (int, Any, True),
    ],
)
def test_the_type_check_accepts_only_types_that_fit(value: Hint, hint: Hint, *, expected: bool) -> None:
    """The type check accepts types that fit and rejects types that do not fit."""
    assert fits(value, hint) is expected
