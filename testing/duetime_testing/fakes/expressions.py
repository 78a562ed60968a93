"""Parses DynamoDB expressions into closures, which are cached by the expression's text.

Source: DynamoDB Developer Guide, "Condition and filter expressions, operators, and functions" and "Update expressions".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TypeAlias

from duetime_testing.fakes.attribute_values import Item, Value, contains, equal, kind_of, number_of, number_text, order

Names: TypeAlias = Mapping[str, str]
Values: TypeAlias = Mapping[str, Value]
Operand: TypeAlias = Callable[[Item, Names, Values], Value | None]
Test: TypeAlias = Callable[[Item, Names, Values], bool]

_TOKEN = re.compile(r"\s*([#:]?\w+|<>|<=|>=|[=<>(),.\[\]+-])")
_SIZED = frozenset({"S", "B", "L", "M", "SS", "NS", "BS"})
"""Types to which `size` applies in a condition."""
_COMPARISONS: dict[str, Callable[[int], bool]] = {
    "<": lambda sign: sign < 0,
    "<=": lambda sign: sign <= 0,
    ">": lambda sign: sign > 0,
    ">=": lambda sign: sign >= 0,
}


class ExpressionInvalid(ValueError):
    """An expression that DynamoDB rejects."""


@dataclass(frozen=True)
class Comparison:
    """A comparison in a key condition: a name, an operator, and the placeholders of the values."""

    name: str
    operator: str
    values: tuple[str, ...]


@dataclass
class Condition:
    """A parsed condition.

    Attributes:
        names: the placeholders of the names.
        values: the placeholders of the values.
        comparisons: the comparisons, if the condition only combines comparisons of names with values by AND.
    """

    test: Test
    names: frozenset[str]
    values: frozenset[str]
    comparisons: tuple[Comparison, ...] | None


@dataclass
class Update:
    """A parsed update expression with its SET, ADD and REMOVE clauses."""

    sets: list[tuple[tuple[str, ...], Operand]]
    adds: list[tuple[tuple[str, ...], str]]
    removes: list[tuple[str, ...]]
    names: frozenset[str]
    values: frozenset[str]


@cache
def condition(text: str) -> Condition:
    """Parse a condition."""
    parser = _Parser(text)
    test = parser.any_of()
    parser.end()
    comparisons = None if parser.complex else tuple(parser.comparisons)
    return Condition(test, frozenset(parser.names), frozenset(parser.values), comparisons)


@cache
def projection(text: str) -> frozenset[str]:
    """The attribute names in a projection; only top-level attributes are supported."""
    names = [each.strip() for each in text.split(",")]
    if not all(re.fullmatch(r"#?\w+", each) for each in names):
        raise NotImplementedError(text)
    return frozenset(names)


@cache
def update(text: str) -> Update:
    """Parse an update."""
    return _Parser(text).update()


def fetch(path: tuple[str, ...], item: Item, names: Names) -> Value | None:
    """The value at a path; `None` if the path does not exist."""
    value = item.get(name_of(path[0], names))
    for part in path[1:]:
        if value is None or "M" not in value:
            return None
        value = value["M"].get(name_of(part, names))
    return value


def name_of(part: str, names: Names) -> str:
    """Resolve a part of a path, which can be a placeholder, to a name."""
    return names[part] if part[0] == "#" else part


@dataclass
class _Parser:
    text: str
    tokens: list[str] = field(default_factory=list)
    at: int = 0
    names: set[str] = field(default_factory=set)
    values: set[str] = field(default_factory=set)
    comparisons: list[Comparison] = field(default_factory=list)
    complex: bool = False

    def __post_init__(self) -> None:
        position = 0
        rest = self.text.rstrip()
        while position < len(rest):
            found = _TOKEN.match(rest, position)
            if found is None:
                raise ExpressionInvalid(f"Syntax error; token: {rest[position:]!r}")
            self.tokens.append(found[1])
            position = found.end()

    def peek(self) -> str:
        """The next token; an empty string at the end of the expression."""
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, wanted: str | None = None) -> str:
        """Consume and return the next token; raise an error if it is not the expected token."""
        token = self.peek()
        if not token or (wanted is not None and token.upper() != wanted):
            raise ExpressionInvalid(f"Syntax error; token: {token or '<EOF>'!r}")
        self.at += 1
        return token

    def takes(self, wanted: str) -> bool:
        """Consume the next token if it matches `wanted`, and return whether it matched."""
        if self.peek().upper() == wanted:
            self.at += 1
            return True
        return False

    def end(self) -> None:
        """Require the end of the expression."""
        if self.peek():
            raise ExpressionInvalid(f"Syntax error; token: {self.peek()!r}")

    def any_of(self) -> Test:
        """Parse conditions joined by OR."""
        tests = [self.all_of()]
        while self.takes("OR"):
            self.complex = True
            tests.append(self.all_of())
        return tests[0] if len(tests) == 1 else lambda item, names, values: any(t(item, names, values) for t in tests)

    def all_of(self) -> Test:
        """Parse conditions joined by AND."""
        tests = [self.one()]
        while self.takes("AND"):
            tests.append(self.one())
        return tests[0] if len(tests) == 1 else lambda item, names, values: all(t(item, names, values) for t in tests)

    def one(self) -> Test:
        """Parse a single condition."""
        if self.takes("NOT"):
            self.complex = True
            test = self.one()
            return lambda item, names, values: not test(item, names, values)
        if self.takes("("):
            self.complex = True
            test = self.any_of()
            self.take(")")
            return test
        if (function := self.peek().lower()) in {"attribute_exists", "attribute_not_exists"}:
            return self._existence(function)
        if function == "begins_with":
            return self._beginning()
        if function == "contains":
            return self._containment()
        return self._comparison()

    def _existence(self, function: str) -> Test:
        self.complex = True
        self.take()
        self.take("(")
        path = self.path()
        self.take(")")
        if function == "attribute_exists":
            return lambda item, names, _values: fetch(path, item, names) is not None
        return lambda item, names, _values: fetch(path, item, names) is None

    def _beginning(self) -> Test:
        self.take()
        self.take("(")
        path = self.path()
        self.take(",")
        label = self.value()
        self.take(")")
        self.comparisons.append(Comparison(path[0], "begins_with", (label,)))

        def test(item: Item, names: Names, values: Values) -> bool:
            value, prefix = fetch(path, item, names), values[label]
            if kind_of(prefix) not in {"S", "B"}:
                raise ExpressionInvalid("Incorrect operand type for operator or function: begins_with")
            if value is None or kind_of(value) != kind_of(prefix):
                return False
            kind = kind_of(prefix)
            return bool(value[kind].startswith(prefix[kind]))

        return test

    def _containment(self) -> Test:
        self.complex = True
        self.take()
        self.take("(")
        path = self.path()
        self.take(",")
        wanted = self.operand()
        self.take(")")

        def test(item: Item, names: Names, values: Values) -> bool:
            value, part = fetch(path, item, names), wanted(item, names, values)
            return value is not None and part is not None and contains(value, part)

        return test

    def _comparison(self) -> Test:
        token = self.peek()
        left = self.operand()
        operator = self.take().upper()
        if operator == "IN":
            return self._membership(left)
        if operator == "BETWEEN":
            low, high = self.value(), (self.take("AND"), self.value())[1]
            self.comparisons.append(Comparison(token, operator, (low, high)))
            return lambda item, names, values: _is_between(left(item, names, values), values[low], values[high])
        label = self.peek()
        right = self.operand()
        self.comparisons.append(Comparison(token, operator, (label,)))
        return _compared(operator, left, right)

    def _membership(self, left: Operand) -> Test:
        self.complex = True
        self.take("(")
        options = [self.operand()]
        while self.takes(","):
            options.append(self.operand())
        self.take(")")

        def test(item: Item, names: Names, values: Values) -> bool:
            value = left(item, names, values)
            if value is None:
                return False
            found = (option(item, names, values) for option in options)
            return any(each is not None and equal(value, each) for each in found)

        return test

    def operand(self) -> Operand:
        """Parse a value, a path, or `size(path)`."""
        if self.peek().lower() == "size":
            return self._size()
        if self.peek().startswith(":"):
            label = self.value()
            return lambda _item, _names, values: values[label]
        path = self.path()
        if len(path) == 1 and path[0][0] == "#":
            only = path[0]
            return lambda item, names, _values: item.get(names[only])
        return lambda item, names, _values: fetch(path, item, names)

    def _size(self) -> Operand:
        self.complex = True
        self.take()
        self.take("(")
        path = self.path()
        self.take(")")

        def size(item: Item, names: Names, _values: Values) -> Value | None:
            value = fetch(path, item, names)
            if value is None or kind_of(value) not in _SIZED:
                return None
            held = value[kind_of(value)]
            return {"N": str(len(held.encode() if isinstance(held, str) else held))}

        return size

    def path(self) -> tuple[str, ...]:
        """Parse a path of names."""
        parts = [self.name()]
        while self.takes("."):
            parts.append(self.name())
        return tuple(parts)

    def name(self) -> str:
        """Parse a name or its placeholder."""
        token = self.take()
        if token[0] == "#":
            self.names.add(token)
        elif not (token[0].isalpha() or token[0] == "_"):
            raise ExpressionInvalid(f"Syntax error; token: {token!r}")
        return token

    def value(self) -> str:
        """Parse the placeholder of a value."""
        token = self.take()
        if token[0] != ":":
            raise ExpressionInvalid(f"Syntax error; token: {token!r}")
        self.values.add(token)
        return token

    def update(self) -> Update:
        """Parse the clauses of an update."""
        made = Update([], [], [], frozenset(), frozenset())
        seen: set[str] = set()
        while self.peek():
            clause = self.take().upper()
            if clause in seen or clause not in {"SET", "ADD", "REMOVE"}:
                raise ExpressionInvalid(f"Invalid UpdateExpression: {clause}")
            seen.add(clause)
            self._change(clause, made)
            while self.takes(","):
                self._change(clause, made)
        if not seen:
            raise ExpressionInvalid("Invalid UpdateExpression: The expression can not be empty;")
        made.names, made.values = frozenset(self.names), frozenset(self.values)
        return made

    def _change(self, clause: str, made: Update) -> None:
        path = self.path()
        if clause == "REMOVE":
            made.removes.append(path)
        elif clause == "ADD":
            made.adds.append((path, self.value()))
        else:
            self.take("=")
            made.sets.append((path, self._sum()))

    def _sum(self) -> Operand:
        left = self._term()
        if (sign := self.peek()) not in {"+", "-"} or not sign:
            return left
        self.take()
        right = self._term()

        def total(item: Item, names: Names, values: Values) -> Value:
            one, other = left(item, names, values), right(item, names, values)
            if one is None or other is None:
                raise ExpressionInvalid(
                    "The provided expression refers to an attribute that does not exist in the item"
                )
            if "N" not in one or "N" not in other:
                raise ExpressionInvalid("An operand in the update expression has an incorrect data type")
            mine, theirs = number_of(one["N"]), number_of(other["N"])
            return {"N": number_text(mine + theirs if sign == "+" else mine - theirs)}

        return total

    def _term(self) -> Operand:
        if not self.takes("IF_NOT_EXISTS"):
            return self.operand()
        self.take("(")
        path = self.path()
        self.take(",")
        other = self.operand()
        self.take(")")

        def term(item: Item, names: Names, values: Values) -> Value | None:
            found = fetch(path, item, names)
            return other(item, names, values) if found is None else found

        return term


def _compared(operator: str, left: Operand, right: Operand) -> Test:
    if operator in {"=", "<>"}:
        wanted = operator == "="

        def same(item: Item, names: Names, values: Values) -> bool:
            one, other = left(item, names, values), right(item, names, values)
            return (one is not None and other is not None and equal(one, other)) == wanted

        return same
    if operator not in _COMPARISONS:
        raise ExpressionInvalid(f"Syntax error; token: {operator!r}")
    holds = _COMPARISONS[operator]

    def ordered(item: Item, names: Names, values: Values) -> bool:
        one, other = left(item, names, values), right(item, names, values)
        if one is None or other is None:
            return False
        sign = order(one, other)
        return sign is not None and holds(sign)

    return ordered


def _is_between(value: Value | None, low: Value, high: Value) -> bool:
    if value is None:
        return False
    above, below = order(value, low), order(value, high)
    return above is not None and below is not None and above >= 0 >= below
