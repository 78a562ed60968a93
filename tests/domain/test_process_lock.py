from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Lock

import pytest

from duetime.handlers import process_lock


@pytest.mark.parametrize("limit", [1, 3])
def test_no_more_threads_than_the_limit_are_inside_the_block(limit: int) -> None:
    """If eight threads use the lock, the number of threads inside the block never exceeds the limit."""
    counting, together = Lock(), Barrier(8)
    inside, most = 0, 0

    def enter(_: int) -> None:
        nonlocal inside, most
        together.wait()
        for _round in range(50):
            with process_lock(f"limit {limit}", limit):
                with counting:
                    inside += 1
                    most = max(most, inside)
                with counting:
                    inside -= 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(enter, range(8)))
    assert 1 <= most <= limit


def test_an_exception_in_the_block_releases_the_lock() -> None:
    """An exception inside the block releases the lock."""
    for _ in range(3):
        with pytest.raises(LookupError), process_lock("raising"):
            raise LookupError


def test_a_different_or_zero_limit_of_a_lock_is_rejected() -> None:
    """A different limit for the same lock is refused, and so is a limit of zero."""
    with process_lock("one limit", 2):
        pass
    with pytest.raises(ValueError, match="has the limit 2, not 3"), process_lock("one limit", 3):
        pass
    with pytest.raises(ValueError, match="at least 1"), process_lock("nobody", 0):
        pass
