"""Tests how often type defaults are read, and what happens if they cannot be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from duetime.domain.dispatch.cursors import ShardHistory
from duetime.domain.errors import Unavailable
from duetime.domain.operating_parameters import TYPE_DEFAULTS_LIFE, TYPE_DEFAULTS_TRUST
from duetime.domain.tasks.type_defaults import OwnDefaults, OwnerTypes, TaskSpec
from duetime.services.enqueue import Shards
from duetime.services.tasks.creation_rules import TypeDefaults
from tests.clocks import NOW

if TYPE_CHECKING:
    from typing import Any

OWN = OwnerTypes({"mail": OwnDefaults({"timeout_seconds": 30})}, 1)
SPEC = TaskSpec("mail")


class World:
    """A clock, and stores of defaults and shards that count their reads."""

    def __init__(self, *, is_used: bool) -> None:
        self.at = NOW
        self.reads = {"defaults": 0, "shards": 0}
        self.is_down = False
        self.is_used = is_used
        runtime: Any = self
        clock: Any = self
        store: Any = self
        self.types = TypeDefaults(store, {}, Shards(_ShardStore(self), clock, 1), runtime)

    def now(self) -> int:
        """The time."""
        return self.at

    def count(self, what: str) -> None:
        """Count a read."""
        self.reads[what] += 1
        if self.is_down:
            raise Unavailable("down")

    def read(self, _owner: str, *, consistent: bool) -> OwnerTypes:
        """Read the defaults of an owner."""
        assert not consistent
        self.count("defaults")
        return OWN


class _ShardStore:
    def __init__(self, world: World) -> None:
        self._world = world

    def read(self) -> ShardHistory:
        self._world.count("shards")
        return ShardHistory(has_type_defaults=self._world.is_used).grown(1, 0)

    def announce(self, _shards: int, _now: int) -> ShardHistory:
        raise AssertionError

    def announce_type_defaults(self) -> None:
        raise AssertionError


def test_no_defaults_are_read_if_an_owner_has_none() -> None:
    """If an owner has no defaults, creations learn this from an item that they read every five seconds anyway."""
    world = World(is_used=False)
    for _ in range(100):
        assert world.types.completed("ann", SPEC) == SPEC
    assert world.reads == {"defaults": 0, "shards": 1}
    world.is_used = True
    world.at += TYPE_DEFAULTS_LIFE
    assert world.types.completed("ann", SPEC).timeout_seconds == 30
    assert world.reads == {"defaults": 1, "shards": 2}


def test_defaults_are_read_every_five_seconds() -> None:
    """An owner's defaults are read once every five seconds, however many tasks are created."""
    world = World(is_used=True)
    for _ in range(100):
        assert world.types.completed("ann", SPEC).timeout_seconds == 30
    assert world.reads == {"defaults": 1, "shards": 1}
    world.types.completed("bob", SPEC)
    world.at += TYPE_DEFAULTS_LIFE
    world.types.completed("ann", SPEC)
    assert world.reads == {"defaults": 3, "shards": 1}


def test_known_defaults_apply_for_a_minute_while_the_store_is_down() -> None:
    """If defaults cannot be read, the last known defaults apply for a minute; after that, no task is created."""
    world = World(is_used=True)
    world.types.completed("ann", SPEC)
    world.is_down = True
    world.at += TYPE_DEFAULTS_LIFE
    assert world.types.completed("ann", SPEC).timeout_seconds == 30
    with pytest.raises(Unavailable):
        world.types.completed("bob", SPEC)
    world.at = NOW + TYPE_DEFAULTS_TRUST
    with pytest.raises(Unavailable):
        world.types.completed("ann", SPEC)


def test_the_absence_of_defaults_is_trusted_for_a_minute() -> None:
    """The absence of defaults is also trusted for a minute while defaults cannot be read."""
    world = World(is_used=False)
    world.types.completed("ann", SPEC)
    world.is_down = True
    world.at += TYPE_DEFAULTS_LIFE
    assert world.types.completed("ann", SPEC) == SPEC
    world.at = NOW + TYPE_DEFAULTS_TRUST
    with pytest.raises(Unavailable):
        world.types.completed("ann", SPEC)
