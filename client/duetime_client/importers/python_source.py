"""Reads values from the syntax tree of Python source; the file is neither imported nor executed."""

from __future__ import annotations

import ast
import operator
import warnings
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from duetime_client.importers.text_sources import SourceUnreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from duetime_client.importers.draft import Source

_DEEPEST = 50
_MOST_STEPS = 500_000
_LARGEST = 10**15
_LONGEST_TEXT = 100_000
_OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}


@dataclass(frozen=True, slots=True)
class Unknown:
    """The source of an expression whose value is known only at run time."""

    text: str

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Called:
    """A call: the last part of the function's name, the arguments, and the source, which messages show."""

    name: str
    arguments: Sequence[object]
    keywords: Mapping[str, object]
    text: str = field(compare=False, default="")

    def __repr__(self) -> str:
        return self.text

    def argument(self, position: int, name: str) -> object:
        """The argument at a position or with a name; `None` if the argument is not given."""
        return self.arguments[position] if len(self.arguments) > position else self.keywords.get(name)


def parse_python(source: Source) -> ast.Module:
    """The syntax tree of a file.

    Raises:
        SourceUnreadable: The file is not Python 3.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source.text)
    except SyntaxError as error:
        raise SourceUnreadable(f"is not Python 3: {error.msg}", error.lineno or 0) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise SourceUnreadable(f"is not Python that can be read: {error or type(error).__name__}") from error


class Values:
    """Evaluates literals, constants of the module, arithmetic, `timedelta` and `dict(…)`."""

    def __init__(self, tree: ast.Module) -> None:
        self._constants: dict[str, ast.expr | None] = {}
        for name, value in assignments(tree):
            # The value of a name that is assigned twice is unknown.
            self._constants[name] = None if name in self._constants else value
        self._depth = self._steps = 0

    def of(self, node: ast.expr) -> Any:  # noqa: ANN401 - any value of Python
        """The value of a node: `Called` for a call, `Unknown` for a value that is known only at run time."""
        self._steps += 1
        # A constant that refers to another constant several times can grow exponentially.
        if self._depth >= _DEEPEST or self._steps > _MOST_STEPS:
            return Unknown("…")
        self._depth += 1
        try:
            return self._of(node)
        finally:
            self._depth -= 1

    def _of(self, node: ast.expr) -> object:
        match node:
            case ast.Constant(value=str() | int() | float() | None as value):
                return value
            case ast.Name(id=name):
                constant = self._constants.get(name)
                return Unknown(name) if constant is None else self.of(constant)
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                return [self.of(part) for part in parts]
            case ast.Set(elts=parts):
                return self._set(parts, node)
            case ast.Dict():
                return self._dict(node)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                value = self.of(operand)
                return -value if isinstance(value, int | float | timedelta) else Unknown(_source(node))
        return self._combined(node)

    def _combined(self, node: ast.expr) -> object:
        match node:
            case ast.BinOp():
                return self._computed(node)
            case ast.Call():
                return self._called(node)
        return Unknown(_source(node))

    def _set(self, parts: Sequence[ast.expr], node: ast.expr) -> object:
        values = [self.of(part) for part in parts]
        if all(isinstance(each, str | int) for each in values):
            return sorted(set(values), key=lambda each: (isinstance(each, str), each))
        return Unknown(_source(node))

    def _dict(self, node: ast.Dict) -> object:
        found: dict[object, object] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                inner = self.of(value)
                if not isinstance(inner, dict):
                    return Unknown(_source(node))
                found |= inner
                continue
            name = self.of(key)
            if not isinstance(name, str | int | float | bool | None):
                return Unknown(_source(node))
            found[name] = self.of(value)
        return found

    def _computed(self, node: ast.BinOp) -> object:
        left, right = self.of(node.left), self.of(node.right)
        compute = _OPERATORS.get(type(node.op))
        numbers = all(isinstance(each, int | float | timedelta) for each in (left, right))
        texts = isinstance(node.op, ast.Add) and isinstance(left, str) and isinstance(right, str)
        if compute is None or not (numbers or texts):
            return Unknown(_source(node))
        try:
            value = compute(left, right)
        except (TypeError, ArithmeticError):
            return Unknown(_source(node))
        is_large = isinstance(value, int | float) and not -_LARGEST < value < _LARGEST
        is_long = isinstance(value, str) and len(value) > _LONGEST_TEXT
        return Unknown(_source(node)) if is_large or is_long else value

    def _called(self, node: ast.Call) -> object:
        name = last_name(node.func)
        if any(isinstance(each, ast.Starred) for each in node.args) or any(each.arg is None for each in node.keywords):
            return Unknown(_source(node))
        call = Called(
            name,
            [self.of(each) for each in node.args],
            {each.arg: self.of(each.value) for each in node.keywords if each.arg},
            _source(node),
        )
        if name == "timedelta":
            return _length(call)
        if name == "dict" and not call.arguments:
            return dict(call.keywords)
        return call


def _length(call: Called) -> object:
    try:
        return timedelta(*call.arguments, **call.keywords)  # type: ignore[arg-type]  # errors are caught below
    except (TypeError, ValueError, OverflowError):
        return Unknown(call.text)


def assignments(tree: ast.AST) -> list[tuple[str, ast.expr]]:
    """The names and values of all assignments to plain names in a module, including those in blocks and classes."""
    found: list[tuple[str, ast.expr]] = []
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=targets, value=value):
                found += [(each.id, value) for each in targets if isinstance(each, ast.Name)]
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                found.append((name, value))
    return found


def last_name(node: ast.expr) -> str:
    """The last part of a dotted name, such as `task` for `app.task`; empty for other expressions."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _source(node: ast.AST) -> str:
    try:
        return ast.unparse(node)[:_LONGEST_TEXT]
    except (RecursionError, ValueError):
        return "…"
