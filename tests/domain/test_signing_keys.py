"""Tests which signing keys are live at a time, after any sequence of rotations."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime_common.signing_keys import DAY_MS, SecretVersion, SigningKey, SigningKeys, SigningKeysFull

KEY = "T2xk" * 16
T0 = 1_790_000_000_000
FIRST = SigningKeys((SigningKey(KEY, T0),))


@pytest.mark.parametrize("text", [KEY, f"whsec_{KEY}"])
def test_a_generated_key_is_read_as_a_key_without_rotations(text: str) -> None:
    """A plain string, which is what CloudFormation generates, is read as a key without rotations."""
    keys = SigningKeys.parse(text)
    assert keys.live("ann", T0) == (SecretVersion(KEY),)
    assert SigningKeys.parse(keys.text) == keys


@pytest.mark.parametrize("text", ["{", "{}", '{"keys": 1}', '{"keys": [1]}', '{"keys": [{"key": "a", "since": 1}]}'])
def test_the_error_for_an_invalid_key_does_not_show_its_text(text: str) -> None:
    """The error for a key in an invalid form does not show the key."""
    with pytest.raises(ValueError, match=r"^(?!.*keys).*$"):
        SigningKeys.parse(text)


STEPS = st.lists(
    st.tuples(
        st.integers(0, 400 * DAY_MS),
        st.sampled_from(["all", "ann", "bob", "nothing"]),
        st.none() | st.integers(0, 200),
    ),
    max_size=12,
)


@given(STEPS)
def test_a_rotation_keeps_the_previous_key_and_at_most_two_keys(steps: list[tuple[int, str, int | None]]) -> None:
    """At most two keys are live, and each rotation adds a current key and keeps the previous key."""
    keys, now, rotated = FIRST, T0, False
    seen = [keys.live("ann", now)]
    for number, (after, what, days) in enumerate(steps):
        now += after + 1
        before = keys.live("ann", now - 1)
        if what == "all":
            keys = keys.rotated(f"{KEY}{number}", now, days)
        elif what != "nothing":
            keys = keys.rotated_for(what, now)
        keys = SigningKeys.parse(keys.text)
        live, rotated = keys.live("ann", now), what in {"all", "ann"}
        assert 1 <= len(live) <= 2
        assert len(set(live)) == len(live)
        assert not rotated or (live[0] not in before and live[1] == before[0])
        seen.append(live)
    for earlier, later in pairwise(seen):
        assert earlier[0] == later[0] or later[0] not in earlier


@given(st.integers(1, 3_650), st.integers(0, 100))
def test_the_current_secret_becomes_the_previous_at_the_announced_time(days: int, periods: int) -> None:
    """At the announced time, the current secret becomes the previous secret."""
    keys = FIRST.rotated(KEY[::-1], T0 + 5, days)
    now = T0 + 5 + periods * days * DAY_MS
    at = keys.rotates_at("ann", now)
    assert at is not None
    current = keys.live("ann", now)[0]
    assert keys.live("ann", at - 1)[0] == current
    assert keys.live("ann", at)[1] == current
    assert keys.rotates_at("ann", at) == at + days * DAY_MS
    assert FIRST.rotates_at("ann", now) is None


def test_a_rotation_keeps_its_schedule_unless_a_new_schedule_is_given() -> None:
    """Without a new schedule, a rotation keeps the schedule, counted from the last rotation; zero days end it."""
    keys = FIRST.rotated("a", T0, 30).rotated("b", T0 + 10 * DAY_MS)
    assert keys.rotates_at("ann", T0 + 10 * DAY_MS) == T0 + 40 * DAY_MS
    assert keys.rotated_for("ann", T0 + 15 * DAY_MS).rotates_at("ann", T0 + 15 * DAY_MS) == T0 + 45 * DAY_MS
    assert keys.rotated("c", T0 + 20 * DAY_MS, 0).rotates_at("ann", T0 + 20 * DAY_MS) is None


def test_a_rotation_for_all_owners_removes_rotations_of_single_owners() -> None:
    """The number of rotations for single owners is limited, and a rotation for all owners removes such rotations."""
    keys = FIRST
    for number in range(500):
        keys = keys.rotated_for(f"{'o' * 100}{number:03}", T0)
    assert SigningKeys.parse(keys.text) == keys
    for number in range(500, 600):
        keys = keys.rotated_for(f"{'o' * 100}{number:03}", T0)
    with pytest.raises(SigningKeysFull, match="rotate the secrets of all owners"):
        _ = keys.text
    assert len(keys.rotated("a", T0).rotated("b", T0).text) < 300
