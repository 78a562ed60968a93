from __future__ import annotations

import copy
import inspect
import pickle
from dataclasses import FrozenInstanceError, asdict, field, fields, replace
from typing import TYPE_CHECKING

import pytest

from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable


@frozen
class Point:
    """A class with every kind of field."""

    x: int
    y: int = 2
    tags: list[str] = field(default_factory=list)
    note: str = field(default="", compare=False, repr=False)
    total: int = field(init=False)
    reads: dict[str, int] = field(default_factory=dict, init=False)
    kind: str = field(default="point", init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", self.x + self.y)


@frozen(kw_only=True)
class Named:
    """A class with keyword-only arguments."""

    first: int = 1
    second: int


@frozen
class Labeled(Point):
    """A class that inherits the fields of another class and adds fields."""

    label: str = "none"


@frozen(order=True)
class Version:
    """A class whose instances can be ordered."""

    number: int
    name: str


@frozen
class Shown:
    """A class with its own methods."""

    number: int

    def __repr__(self) -> str:
        return "shown"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shown)

    def __hash__(self) -> int:
        return 0


@frozen
class Nothing:
    """A class without fields."""


def test_fields_have_arguments_or_defaults_and_unshared_factory_values() -> None:
    """Each field has its argument or default, and instances do not share the values of a factory."""
    point, other = Point(1, tags=["a"]), Point(1)
    assert (point.x, point.y, point.tags, point.note, point.total, point.kind) == (1, 2, ["a"], "", 3, "point")
    assert Point(1).tags is not other.tags
    assert Point(1).reads is not other.reads


def test_methods_of_the_class_are_kept() -> None:
    """A class keeps its own representation, equality and hash."""
    assert repr(Shown(1)) == "shown"
    assert Shown(1) == Shown(2)
    assert hash(Shown(1)) == hash(Shown(2))


@pytest.mark.parametrize("arguments", [(), (1, 2, [], "", 3)])
def test_missing_and_unknown_arguments_are_rejected(arguments: tuple[object, ...]) -> None:
    """A missing argument for a field without a default is refused, as is an argument for a field that takes none."""
    with pytest.raises(TypeError, match=r"Point\.__init__"):
        Point(*arguments)  # type: ignore[arg-type]  # this is the tested mistake


def test_kw_only_rejects_positional_arguments() -> None:
    """`kw_only` refuses positional arguments, and allows a field without a default after a field with a default."""
    assert Named(second=3).first == 1
    with pytest.raises(TypeError):
        Named(1, 3)  # type: ignore[call-arg]  # this is the tested mistake


@pytest.mark.parametrize("name", ["x", "unknown"])
def test_attributes_of_an_instance_cannot_be_assigned_or_deleted(name: str) -> None:
    """Fields and other attributes of an instance cannot be assigned or deleted."""
    point = Point(1)
    with pytest.raises(FrozenInstanceError, match=name):
        setattr(point, name, 5)
    with pytest.raises(FrozenInstanceError, match=name):
        delattr(point, name)
    assert point.x == 1
    assert not hasattr(point, "__dict__")


def test_instances_with_equal_compared_fields_are_equal() -> None:
    """Instances of one class with equal compared fields are equal, and have the same hash."""
    assert Point(1, note="a") == Point(1, note="b")
    assert Point(1) != Point(2)
    assert Point(1) != Labeled(1)
    assert Point(1) != object()
    assert hash(Named(second=3)) == hash(Named(second=3))
    assert len({Nothing(), Nothing(), Named(second=1), Named(second=2)}) == 3


def test_instances_are_ordered_only_with_the_order_option() -> None:
    """With `order`, instances compare like tuples of their fields; without `order`, they do not compare."""
    first, second = Version(1, "b"), Version(2, "a")
    assert sorted([second, first]) == [first, second]
    assert max(first, second) is second
    assert first <= Version(1, "b") >= first
    with pytest.raises(TypeError):
        _ = first < (2, "a")  # type: ignore[operator]  # this is the tested mistake
    with pytest.raises(TypeError):
        _ = Point(1) < Point(2)  # type: ignore[operator]  # this is the tested mistake


def test_the_representation_names_the_fields() -> None:
    """A frozen class has the same representation as a dataclass."""
    assert repr(Named(second=3)) == "Named(first=1, second=3)"
    assert repr(Nothing()) == "Nothing()"
    assert repr(Point(1)) == "Point(x=1, y=2, tags=[], total=3, reads={}, kind='point')"


def test_the_functions_of_dataclasses_accept_a_frozen_class() -> None:
    """`fields`, `replace`, `asdict`, `match` and `inspect.signature` work as with a dataclass."""
    assert replace(Point(1), x=4).total == 6
    assert asdict(Named(second=3)) == {"first": 1, "second": 3}
    assert [each.name for each in fields(Labeled)][-1] == "label"
    assert list(inspect.signature(Named).parameters) == ["first", "second"]
    match Labeled(1, label="a"):
        case Labeled(x, y):
            assert (x, y) == (1, 2)


def _pickled(value: Labeled) -> Labeled:
    read: Labeled = pickle.loads(pickle.dumps(value))  # noqa: S301 - our own
    return read


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, _pickled])
def test_copies_have_all_fields_and_are_frozen(copied: Callable[[Labeled], Labeled]) -> None:
    """Copies have all fields, including those of the base class, and are frozen like the original."""
    original = Labeled(1, tags=["a"], label="b")
    made = copied(original)
    assert (made, repr(made), made is original) == (original, repr(original), False)
    with pytest.raises(FrozenInstanceError):
        made.x = 2  # type: ignore[misc]  # this is the tested mistake
