"""Defines frozen dataclasses quickly, because each cold start defines about two hundred of them.

For each class, `dataclass(frozen=True, slots=True)` compiles six methods, which takes a third of a cold start. This
module compiles only `__init__`, which writes to the slots directly, and needs half the time.
"""

from __future__ import annotations

from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from functools import total_ordering
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast, dataclass_transform, overload

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import Field

C = TypeVar("C")

_NOT_GIVEN = object()
"""Default argument for a field with a `default_factory`."""


@overload
def frozen(cls: type[C], /) -> type[C]: ...


@overload
def frozen(*, kw_only: bool = False, order: bool = False) -> Callable[[type[C]], type[C]]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: Any = None, /, *, kw_only: bool = False, order: bool = False) -> Any:
    """Make a class a frozen dataclass with slots. Instances with equal fields are equal.

    `fields`, `replace`, `asdict`, `match`, `copy` and `pickle` work as with every dataclass. Methods that the class
    defines are kept.

    Args:
        cls: the class.
        kw_only: whether arguments must be named.
        order: whether instances are ordered by their fields, like tuples.
    """

    def decorated(plain: type[C]) -> type[C]:
        made: Any = dataclass(init=False, repr=False, eq=False, slots=True, kw_only=kw_only)(plain)
        methods = {"__init__": _init(made), "__repr__": _repr, "__setattr__": _refuse, "__delattr__": _refuse}
        methods |= {"__setstate__": _restore, **_comparisons(made, order=order)}
        for name in methods.keys() - vars(plain).keys():
            setattr(made, name, methods[name])
        return cast("type[C]", total_ordering(made) if order else made)

    return decorated if cls is None else decorated(cls)


def _comparisons(cls: Any, *, order: bool) -> dict[str, Callable[..., Any]]:  # noqa: ANN401 - any class
    names = [each.name for each in fields(cls) if each.compare]
    values: Callable[[object], Any] = attrgetter(*names) if names else lambda _: ()

    def equal(self: object, other: object) -> bool:
        return values(self) == values(other) if self.__class__ is other.__class__ else NotImplemented

    def less(self: object, other: object) -> bool:
        return values(self) < values(other) if self.__class__ is other.__class__ else NotImplemented

    def hashed(self: object) -> int:
        return hash(values(self))

    methods: dict[str, Callable[..., Any]] = {"__eq__": equal, "__hash__": hashed}
    return {**methods, "__lt__": less} if order else methods


def _init(cls: Any) -> Callable[..., None]:  # noqa: ANN401 - any class
    names: dict[str, Any] = {"_NOT_GIVEN": _NOT_GIVEN}
    positional: list[str] = ["self"]
    named: list[str] = []
    lines: list[str] = []
    for each in fields(cls):
        name = each.name
        names[f"_set_{name}"] = getattr(cls, name).__set__
        names[f"_default_{name}"] = each.default
        names[f"_make_{name}"] = each.default_factory
        if each.init:
            (named if each.kw_only else positional).append(_parameter(each))
        if value := _value(each):
            lines.append(f"    _set_{name}(self, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("    self.__post_init__()")
    parameters = [*positional, "*", *named] if named else positional
    text = "\n".join([f"def __init__({', '.join(parameters)}):", *(lines or ["    pass"])])
    exec(text, names)  # noqa: S102 - as in `dataclasses`: the text has only names of fields
    init: Callable[..., None] = names["__init__"]
    # Python shows this name in errors about arguments.
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init


def _parameter(each: Field[Any]) -> str:
    if each.default_factory is not MISSING:
        return f"{each.name}=_NOT_GIVEN"
    return each.name if each.default is MISSING else f"{each.name}=_default_{each.name}"


def _value(each: Field[Any]) -> str:
    """The expression for a field's value; empty if `__post_init__` sets the field."""
    name = each.name
    if each.default_factory is not MISSING:
        return f"_make_{name}() if {name} is _NOT_GIVEN else {name}" if each.init else f"_make_{name}()"
    if each.init:
        return name
    return "" if each.default is MISSING else f"_default_{name}"


def _repr(self: Any) -> str:  # noqa: ANN401 - any instance
    shown = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _refuse(_self: object, name: str, *_value: object) -> NoReturn:
    message = f"cannot assign to field {name!r}"
    raise FrozenInstanceError(message)


def _restore(self: object, state: tuple[None, dict[str, Any]]) -> None:
    """Set the fields of a copy (Source: Python documentation, `object.__getstate__`)."""
    for name, value in state[1].items():
        object.__setattr__(self, name, value)
