"""Tests dividing a suite that takes too long into parts."""

from __future__ import annotations

from hashlib import sha256

import pytest

from tests.parts import Part, part_of_commit, read_part


def test_each_commit_has_a_part_and_every_part_is_used() -> None:
    """The same commit always runs the same part, and a few hundred commits run all forty parts."""
    commits = [sha256(str(number).encode()).hexdigest()[:40] for number in range(400)]
    parts = [part_of_commit(commit, 40) for commit in commits]
    assert parts == [part_of_commit(commit, 40) for commit in commits]
    assert set(parts) == {Part(number, 40) for number in range(1, 41)}


def test_every_name_is_in_one_part() -> None:
    """Every name is in exactly one part."""
    parts = [Part(number, 3) for number in (1, 2, 3)]
    assert all(sum(part.has(f"name {number}") for part in parts) == 1 for number in range(100))


@pytest.mark.parametrize("text", ["3/10", "1/1"])
def test_a_part_is_read_back_unchanged(text: str) -> None:
    """A part is written as its number, a slash, and the number of parts."""
    assert str(read_part(text)) == text


def test_the_checked_out_commit_has_a_part() -> None:
    """The checked-out commit's hash determines the part."""
    assert read_part("commit/3").number in {1, 2, 3}


@pytest.mark.parametrize("text", ["0/3", "4/3", "3", "commit/0", "a/b"])
def test_an_invalid_part_is_rejected(text: str) -> None:
    """The error for an invalid part shows a valid part."""
    with pytest.raises(ValueError, match="is no part such as 3/10 or commit/10"):
        read_part(text)
