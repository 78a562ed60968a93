from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from duetime.domain.tasks.creation import KeyRedirect, RememberedKey
from duetime.domain.tasks.task_options import OnConflict
from duetime.domain.times import DAY
from tests.adapters.examples import HOME, numbered

if TYPE_CHECKING:
    from duetime.ports.tasks import KeyStore

WANTED = RememberedKey(numbered(1), HOME + 60_000, HOME, "5f3a", HOME + DAY + 1)
OTHER = replace(WANTED, task_id=numbered(2), body_hash="other", created_at=HOME + 5, expires_at=HOME + 9 * DAY)


def test_the_first_use_of_a_key_stores_its_value(key_store: KeyStore) -> None:
    """The first use of a key stores the value unchanged."""
    assert key_store.remember("ann", "order-1", WANTED, HOME) == WANTED


def test_later_uses_of_a_key_return_the_first_value(key_store: KeyStore) -> None:
    """Later uses of a key return the value of the first use, equal in every field."""
    key_store.remember("ann", "order-1", WANTED, HOME)
    assert key_store.remember("ann", "order-1", OTHER, HOME + 5) == WANTED
    assert key_store.remember("ann", "order-1", OTHER, WANTED.expires_at - 1) == WANTED


def test_an_expired_key_can_be_used_again(key_store: KeyStore) -> None:
    """An expired key can be used again."""
    key_store.remember("ann", "order-1", WANTED, HOME)
    assert key_store.remember("ann", "order-1", OTHER, WANTED.expires_at) == OTHER
    assert key_store.remember("ann", "order-1", WANTED, WANTED.expires_at) == OTHER


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("ann", "1"), ("bob", "1")),
        (("ann", "1"), ("ann", "2")),
        (("a#b", "c"), ("a", "b#c")),
        (("a", "#"), ("a#", "")),
    ],
)
def test_keys_of_different_owners_are_different(
    key_store: KeyStore, first: tuple[str, str], second: tuple[str, str]
) -> None:
    """Keys of different owners never collide, even if owner and key concatenate to the same string."""
    assert key_store.remember(*first, WANTED, HOME) == WANTED
    assert key_store.remember(*second, OTHER, HOME) == OTHER


def test_the_longest_owner_and_key_can_be_stored(key_store: KeyStore) -> None:
    """The longest owner and key that the API accepts, in the widest characters, can be stored."""
    owner, key = "\U0001f552" * 128, "\U0001f552" * 255
    assert key_store.remember(owner, key, WANTED, HOME) == WANTED
    assert key_store.remember(owner, key, OTHER, HOME) == WANTED


def test_a_key_is_found_until_it_expires(key_store: KeyStore) -> None:
    """Finding a key does not take it, and returns every field, including the revision of a name."""
    wanted = replace(WANTED, edition=7)
    assert key_store.find("ann", "order-1", HOME) is None
    key_store.remember("ann", "order-1", wanted, HOME)
    assert key_store.find("ann", "order-1", wanted.expires_at - 1) == wanted
    assert key_store.find("ann", "order-1", wanted.expires_at) is None
    assert key_store.find("bob", "order-1", HOME) is None


def test_a_key_is_redirected_once(key_store: KeyStore) -> None:
    """A delayed copy of a request does not point the key to another task."""
    key_store.remember("ann", "order-1", WANTED, HOME)
    for number, on_conflict in ((3, OnConflict.KEEP), (4, OnConflict.REPLACE)):
        key_store.redirect(KeyRedirect("ann", "order-1", WANTED.task_id, numbered(number), on_conflict))
    found = key_store.find("ann", "order-1", HOME)
    assert found == replace(WANTED, task_id=numbered(3), on_conflict=OnConflict.KEEP)
